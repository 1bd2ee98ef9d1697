import { randomUUID } from 'node:crypto';
import { type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { pino } from 'pino';
import { hashApiKey, sameHash } from '#libs/contracts/api-key.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { byFunction, byStatements, type Posting } from './posting.ts';

/**
 * The contender without Kafka: fastify and a pool of Postgres connections, which posts before the response. MODE
 * selects one transaction of single statements, or one function call, per request. Validates the API key and the body
 * in the usual way.
 */
const {
  DATABASE_URL = '',
  PORT = '0',
  MODE = 'statements',
  POOL_MAX = '8',
  API_KEY = '',
  API_KEY_PEPPER = '',
} = process.env;

const pool = createPool(
  {
    url: DATABASE_URL,
    application_name: `bench ${MODE}`,
    schema: 'public',
    max: Number(POOL_MAX),
    connection_timeout_ms: 60_000,
  },
  pino({ level: 'warn' }),
);
const post = MODE === 'function' ? byFunction(pool) : byStatements(pool);
const keyHash = hashApiKey(API_KEY_PEPPER, API_KEY);
const app = fastify({ logger: false });

app.addHook('onRequest', async (request, reply) => {
  const key = request.headers['x-api-key'];
  if (typeof key !== 'string' || !sameHash(hashApiKey(API_KEY_PEPPER, key), keyHash))
    await reply.code(401).send({ status: 'error', code: 'unauthorized' });
});

const accountId = { type: 'string', pattern: '^acc_[0-9a-f]{32}$' } as const;
const amount = { type: 'number', exclusiveMinimum: 0, maximum: 9_999_999_999_999.99 } as const;
const description = { type: 'string', maxLength: 500 } as const;
const headers = {
  type: 'object',
  required: ['idempotency-key'],
  properties: { 'idempotency-key': { type: 'string', maxLength: 255 } },
} as const;

interface TransferBody {
  from_account_id: string;
  to_account_id: string;
  amount: number;
}
interface TransactionBody {
  account_id: string;
  transaction_type: string;
  amount: number;
}

app.post<{ Body: TransferBody }>(
  '/transfers',
  {
    schema: {
      headers,
      body: {
        type: 'object',
        required: ['from_account_id', 'to_account_id', 'amount'],
        properties: { from_account_id: accountId, to_account_id: accountId, amount, description },
      },
    },
  },
  (request, reply) => {
    const { from_account_id, to_account_id, amount } = request.body;
    return answer(request, reply, from_account_id, to_account_id, amount, (id) => ({
      transfer_id: `trf_${id}`,
      from_account_id,
      to_account_id,
    }));
  },
);

app.post<{ Body: TransactionBody }>(
  '/transactions',
  {
    schema: {
      headers,
      body: {
        type: 'object',
        required: ['account_id', 'transaction_type', 'amount'],
        properties: { account_id: accountId, transaction_type: { const: 'Deposit' }, amount, description },
      },
    },
  },
  (request, reply) => {
    const { account_id, transaction_type, amount } = request.body;
    return answer(request, reply, account_id, undefined, amount, (id) => ({
      transaction_id: `txn_${id}`,
      account_id,
      transaction_type,
    }));
  },
);

const balance = { name: 'balance', text: 'select balance_minor, currency from accounts where account_number = $1' };

app.get<{ Params: { number: string } }>('/accounts/number/:number/balance', async (request, reply) => {
  const { number } = request.params;
  const { rows } = await pool.query<{ balance_minor: bigint; currency: string }>({ ...balance, values: [number] });
  const [account] = rows;
  if (account === undefined) return reply.code(404).send({ status: 'error', code: 'account_not_found' });
  return { account_number: number, balance: Number(account.balance_minor) / 100, currency: account.currency };
});

async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  from: string,
  to: string | undefined,
  amount: number,
  shown: (id: string) => object,
) {
  const minor = Math.round(amount * 100);
  const operationId = randomUUID();
  const idempotencyKey = String(request.headers['idempotency-key']);
  const posting: Posting = {
    caller: 'bench',
    idempotencyKey,
    operationId,
    accountId: toUuid(from),
    toAccountId: to && toUuid(to),
    minor,
  };
  const reason = await post(posting);
  if (reason !== undefined) return reply.code(422).send({ status: 'error', code: reason });
  const data = {
    ...shown(operationId.replaceAll('-', '')),
    amount: (minor / 100).toFixed(2),
    currency: 'USD',
    description: null,
    status: 'Completed',
    created_at: new Date().toISOString(),
  };
  return reply.code(201).send({ status: 'success', data });
}

/** Formats a time as Postgres does. */
function toUuid(id: string): string {
  return `${id.slice(4, 12)}-${id.slice(12, 16)}-${id.slice(16, 20)}-${id.slice(20, 24)}-${id.slice(24)}`;
}

await app.listen({ host: '127.0.0.1', port: Number(PORT) });
process.once(
  'SIGTERM',
  () =>
    void app
      .close()
      .then(() => pool.end())
      .then(() => process.exit()),
);
