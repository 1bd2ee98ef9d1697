import { expect, it } from 'vitest';
import { z } from 'zod';
import { loadConfig } from '#libs/service/config.ts';
import { gatewayConfig } from '../config.ts';
import { testApp } from '../test/test-app.ts';

const path = '/.well-known/security.txt';

it('contains the contact, without authentication, unlike all other paths', async () => {
  // contract: permission-2
  const { app } = await testApp(undefined, { securityContact: 'mailto:security@bank.example' });
  const answer = await app.inject({ method: 'GET', url: path });
  expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8']);
  const [contact, expires = ''] = answer.body.split('\n');
  expect(contact).toBe('Contact: mailto:security@bank.example');
  const daysAhead = (Date.parse(expires.replace('Expires: ', '')) - Date.now()) / 86_400_000;
  expect([daysAhead > 7, daysAhead < 365]).toEqual([true, true]);
  for (const url of ['/', '/.well-known', '/.well-known/', `${path}/x`, '/.well-known/change-password', '/clients'])
    expect([url, (await app.inject({ method: 'GET', url })).statusCode]).toEqual([url, 401]);
  expect((await app.inject({ method: 'POST', url: path })).statusCode).toBe(401);
  await app.close();
});

it('does not exist if no contact is configured', async () => {
  const { app, keyHeader } = await testApp();
  expect((await app.inject({ method: 'GET', url: path })).statusCode).toBe(401);
  expect((await app.inject({ method: 'GET', url: path, headers: keyHeader() })).statusCode).toBe(404);
  await app.close();
});

it('accepts contacts that RFC 9116 allows, in one line', () => {
  const loadContact = (SECURITY_CONTACT: string) =>
    loadConfig(z.object({ SECURITY_CONTACT: gatewayConfig.shape.SECURITY_CONTACT }), { SECURITY_CONTACT })
      .SECURITY_CONTACT;
  for (const good of ['mailto:security@bank.example', 'https://bank.example/report', 'tel:+254-700-000-001'])
    expect(loadContact(good)).toBe(good);
  for (const bad of ['security@bank.example', 'http://bank.example', 'mailto:a@b.cc\nExpires: never'])
    expect(() => loadContact(bad)).toThrow('SECURITY_CONTACT');
});
