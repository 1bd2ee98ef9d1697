import { expect, test } from 'vitest';
import { createLogger, errorMessage, serializeError } from './logger.ts';

function logged(write: (logger: ReturnType<typeof createLogger>) => void): string {
  let text = '';
  write(createLogger({ service: 's', instance: 'i', level: 'debug' }, { write: (line) => void (text += line) }));
  return text;
}

test('a line has service, instance, level, and time', () => {
  const line: unknown = JSON.parse(logged((logger) => logger.info({ request_id: 'r' }, 'hello')));
  expect(line).toEqual({
    level: 'info',
    service: 's',
    instance: 'i',
    request_id: 'r',
    msg: 'hello',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  });
});

test('only credentials and personal data are redacted, down to four levels', () => {
  const text = logged((logger) =>
    logger.info(
      {
        email: 'a@secret.example',
        'x-api-key': 'secret-1',
        headers: { authorization: 'Bearer secret-2', 'x-api-key': 'secret-3', accept: 'shown-1' },
        req: {
          headers: { authorization: 'secret-4', cookie: 'secret-5', host: 'shown-2' },
          body: { first_name: 'secret-6' },
        },
        client: { address: 'secret-7', client_id: 'shown-3' },
        clients: [{ email: 'secret-8' }, { email: 'secret-9', a: { ussd_phone: 'secret-10' } }],
      },
      'm',
    ),
  );
  expect(text).not.toContain('secret');
  expect(logged((logger) => logger.child({ email: 'secret-11', key_id: 'k' }).info('m'))).not.toContain('secret');
  for (const shown of ['shown-1', 'shown-2', 'shown-3']) expect(text).toContain(shown);
});

test('an error is logged without the fields that database drivers add', () => {
  const error = Object.assign(new Error('duplicate key', { cause: new Error('below') }), {
    code: '23505',
    constraint: 'clients_email',
    detail: 'Key (email)=(a@b.c) already exists.',
    parameters: ['a@b.c'],
  });
  const text = logged((logger) => logger.error({ err: error }, 'failed'));
  expect(text).not.toContain('a@b.c');
  expect(JSON.parse(text)).toMatchObject({
    err: {
      type: 'Error',
      message: 'duplicate key',
      code: '23505',
      constraint: 'clients_email',
      cause: { message: 'below' },
    },
  });
});

test('an error whose causes form a cycle is logged', () => {
  const error = new Error('a');
  error.cause = error;
  expect(JSON.stringify(serializeError(error)).length).toBeLessThan(20_000);
});

test('logging does not change the object', () => {
  const client = { email: 'a@b.c', list: [{ email: 'd@e.f' }] };
  logged((logger) => logger.info({ client }, 'm'));
  expect(client).toEqual({ email: 'a@b.c', list: [{ email: 'd@e.f' }] });
});

test('the reason of an error without a message, such as that of a host with two addresses, is that of its parts', () => {
  const parts = ['::1', '127.0.0.1'].map((address) => new Error(`connect ECONNREFUSED ${address}:1`));
  expect(errorMessage(new AggregateError(parts, ''))).toBe(
    'connect ECONNREFUSED ::1:1; connect ECONNREFUSED 127.0.0.1:1',
  );
  expect(errorMessage(new AggregateError(parts, 'all failed'))).toBe('all failed');
  expect(errorMessage('no error')).toBe('no error');
});
