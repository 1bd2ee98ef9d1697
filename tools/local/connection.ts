import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { MAIN_CLIENT } from './bank.ts';
import { writeAtomically } from './local-dir.ts';
import { users } from './users.ts';

/** The data that callers, tests, and tools need about a running bank: LOCAL_DIR/connection.json. */
export type Connection = {
  base_url: string;
  api_key: string;
  token_endpoint: string;
  client_id: string;
  client_secret: string;
  kafka_brokers: string;
  database_url: string;
  docs_url: string;
  dashboard_url: string;
  /** The users who can sign in to the dashboard, all with the same password. */
  dashboard_users: string[];
  dashboard_password: string;
  services: { name: string; pid: number; health_url: string; base_url?: string }[];
};

/** The values that are known before the services run. */
export function createConnection(
  known: Pick<
    Connection,
    | 'base_url'
    | 'dashboard_url'
    | 'api_key'
    | 'client_secret'
    | 'kafka_brokers'
    | 'database_url'
    | 'dashboard_password'
    | 'services'
  > & { issuer: string },
): Connection {
  const { issuer, base_url, services, ...rest } = known;
  return {
    base_url,
    api_key: rest.api_key,
    token_endpoint: `${issuer}/token`,
    client_id: MAIN_CLIENT,
    client_secret: rest.client_secret,
    kafka_brokers: rest.kafka_brokers,
    database_url: rest.database_url,
    docs_url: `${base_url}/docs`,
    dashboard_url: rest.dashboard_url,
    dashboard_users: users.map(({ user_name }) => user_name),
    dashboard_password: rest.dashboard_password,
    services,
  };
}

const FILE = 'connection.json';

/** Writes connection.json, which exists only while everything runs. */
export function writeConnection(dir: string, connection: Connection): void {
  writeAtomically(join(dir, FILE), `${JSON.stringify(connection, null, 2)}\n`);
}

export function removeConnection(dir: string): void {
  rmSync(join(dir, FILE), { force: true });
}

/** The requests of README.md: they create a client, open an account, and deposit cash. */
export const firstRequests = String.raw`CLIENT_ID=$(curl -s "$BASE_URL/clients" -H "x-api-key: $API_KEY" -H 'content-type: application/json' \
  -d '{"client_type":"Retail","first_name":"Amina","last_name":"Otieno","email":"amina@example.org","contact_number":"+254 700 000 001"}' \
  | grep -o 'cli_[0-9a-f]*')
ACCOUNT_ID=$(curl -s "$BASE_URL/accounts" -H "x-api-key: $API_KEY" -H 'content-type: application/json' \
  -d '{"client_id":"'"$CLIENT_ID"'","account_type":"Savings","currency":"KES","initial_deposit":1500}' \
  | grep -o 'acc_[0-9a-f]*')
curl -s "$BASE_URL/transactions" -H "x-api-key: $API_KEY" -H 'content-type: application/json' -H "Idempotency-Key: slip-7 $ACCOUNT_ID" \
  -d '{"account_id":"'"$ACCOUNT_ID"'","transaction_type":"Deposit","amount":250.75,"description":"Cash at the counter","reference":"SLIP-7"}'
`;

/** Returns the text that is printed when everything runs. Its requests work when pasted. */
export function summary(connection: Connection): string {
  const token = `curl -s ${connection.token_endpoint} -u ${connection.client_id}:${connection.client_secret} -d grant_type=client_credentials`;
  return `
  Base URL    ${connection.base_url}
  API key     ${connection.api_key}
  Token       ${token}
  API docs    ${connection.docs_url}
  Dashboard   ${connection.dashboard_url}
  Sign in     as ${connection.dashboard_users.join(', ')}; password ${connection.dashboard_password}

  Create a client, open an account with a first deposit, and deposit cash (paste all lines):

export BASE_URL='${connection.base_url}' API_KEY='${connection.api_key}'
${firstRequests}`;
}
