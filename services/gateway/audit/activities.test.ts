import { expect, test } from 'vitest';
import { Activities, type Activity } from './activities.ts';

const refusal: Activity = {
  actor: 'unauthenticated',
  address: '192.0.2.1',
  action: 'list_clients',
  outcome: 'invalid_credentials',
  resource_id: null,
  request_id: 'r-1',
  method: 'GET',
  path: '/clients',
  isAudited: true,
};
const at = (second: number) => new Date(second * 1000).toISOString();

test('equal activities are counted from the first one on, and reported once', () => {
  const activities = new Activities();
  for (let i = 0; i < 5; i++) activities.add({ ...refusal, request_id: `r-${i}` }, at(i));
  activities.add({ ...refusal, outcome: 'missing_credentials' }, at(9));
  activities.add({ ...refusal, actor: 'key:a', outcome: 'insufficient_scope' }, at(9));
  expect(
    activities.take().map(({ actor, outcome, count, since, request_id }) => [actor, outcome, count, since, request_id]),
  ).toEqual([
    ['unauthenticated', 'invalid_credentials', 5, at(0), 'r-0'],
    ['unauthenticated', 'missing_credentials', 1, at(9), 'r-1'],
    ['key:a', 'insufficient_scope', 1, at(9), 'r-1'],
  ]);
  expect(activities.take()).toEqual([]);
});

test('unauthenticated requests from any number of addresses cause a limited number of summaries, which count all of them', () => {
  // contract: audit-8
  const activities = new Activities();
  for (let i = 0; i < 30_000; i++)
    activities.add({ ...refusal, address: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}` }, at(0));
  for (let i = 0; i < 7; i++)
    activities.add({ ...refusal, address: '10.0.0.1', outcome: 'missing_credentials', action: `route_${i}` }, at(0));
  const taken = activities.take();
  expect(taken).toHaveLength(22);
  expect(taken.reduce((sum, { count }) => sum + count, 0)).toBe(30_007);
  expect(taken.filter(({ action }) => action === 'various')).toMatchObject([
    { address: null, actor: 'unauthenticated' },
    { address: null, outcome: 'missing_credentials', count: 7 },
  ]);
});

test('unauthenticated requests do not displace callers, and refusals by destination are reported separately', () => {
  const activities = new Activities();
  for (let i = 0; i < 100; i++) activities.add({ ...refusal, address: `10.0.0.${i}` }, at(0));
  for (let i = 0; i < 250; i++) activities.add({ ...refusal, actor: `key:${i}`, outcome: 'insufficient_scope' }, at(0));
  const destination = { ...refusal, actor: 'key:a', outcome: 'destination_refused' as const, isAudited: false };
  for (const resource_id of ['acc_1', 'acc_2', 'acc_1', 'acc_2', 'acc_1'])
    activities.add({ ...destination, resource_id }, at(0));
  const taken = activities.take();
  expect(
    taken
      .filter(({ outcome }) => outcome === 'destination_refused')
      .map(({ resource_id, count }) => [resource_id, count]),
  ).toEqual([
    ['acc_1', 3],
    ['acc_2', 2],
  ]);
  expect(taken).toHaveLength(20 + 1 + 200 + 1 + 2);
});

test('pages reported about one person, or destinations that one caller tries, displace no refusal of others', () => {
  const activities = new Activities();
  const ofOthers = { ...refusal, actor: 'key:others', outcome: 'insufficient_scope' as const };
  const reported = { ...ofOthers, actor: 'jwt:issuer|ada' };
  activities.add(ofOthers, at(0));
  for (let i = 0; i < 603; i++) activities.add({ ...reported, action: `page:x${i % 201}` }, at(0));
  for (let i = 0; i < 603; i++) {
    const destination = { outcome: 'destination_refused' as const, resource_id: `acc_${i % 201}`, isAudited: false };
    activities.add({ ...reported, ...destination, actor: 'key:trying', action: 'create_transfer' }, at(0));
  }
  const taken = activities.take();
  expect(taken.filter(({ actor }) => actor === 'key:others')).toMatchObject([{ action: 'list_clients', count: 1 }]);
  const ofAda = taken.filter(({ actor }) => actor === reported.actor);
  expect(ofAda).toHaveLength(11);
  expect(ofAda[0]).toMatchObject({ action: 'page:various', outcome: 'insufficient_scope', count: 191 * 3 });
  activities.add({ ...reported, action: 'page:x200' }, at(61));
  expect(activities.take()).toMatchObject([{ action: 'page:x200', count: 1 }]);
});
