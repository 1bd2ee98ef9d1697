import { hash } from 'node:crypto';
import type { LoadPlan } from './load-plan.ts';

/** Returns one of the generated accounts from number `from` to before `to`. */
const generated = (from: number, to: number): string =>
  `acc_${hash('md5', `account ${from + Math.floor(Math.random() * (to - from))}`)}`;

/**
 * Returns the requests of a load as text. Each call returns the next one, with its own Idempotency-Key if it moves
 * money. `run` makes the keys of two loads different. Accounts are chosen uniformly.
 */
export function createRequests(
  { credential, target }: Pick<LoadPlan, 'credential' | 'target'>,
  run: string,
): () => string {
  const head = (line: string) => `${line} HTTP/1.1\r\nhost: 127.0.0.1\r\n${credential}\r\n`;
  let count = 0;
  if (target.kind === 'balance' || target.kind === 'get') {
    const paths =
      target.kind === 'get'
        ? target.paths
        : target.numbers.map((number) => `/accounts/number/${encodeURIComponent(number)}/balance`);
    const requests = paths.map((path) => `${head(`GET ${path}`)}\r\n`);
    return target.kind === 'get' ? () => requests[count++ % requests.length] ?? '' : () => pick(requests);
  }
  const path =
    target.kind === 'post'
      ? target.path
      : { transfer: '/transfers', deposit: '/transactions', batch: '/batches' }[target.kind];
  const post = `${head(`POST ${path}`)}content-type: application/json\r\nidempotency-key: ${run}-`;
  const account = 'generated' in target ? () => generated(0, target.generated) : () => pick(target.accounts);
  const { hot = 0, generated: all = 0 } = 'generated' in target ? target : {};
  const another = (than: string) => {
    let other = account();
    while (other === than) other = account();
    return other;
  };
  const transfer = () => {
    const from = hot > 0 ? generated(hot, all) : account();
    const to = hot > 0 ? generated(0, hot) : another(from);
    return `{"from_account_id":"${from}","to_account_id":"${to}","amount":0.25}`;
  };
  let keys = 0;
  const filled = (template: string) => {
    const one = account();
    const values = { one: () => one, other: () => another(one), key: () => `${run}-${(keys++).toString(36)}` };
    return template.replace(/\$(one|other|key)/g, (_, name: keyof typeof values) => values[name]());
  };
  const bodies = {
    transfer,
    deposit: () => `{"account_id":"${account()}","transaction_type":"Deposit","amount":1.25}`,
    post: () => {
      const { body, item = '', items = 0 } = target as { body: string; item?: string; items?: number };
      return filled(body).replace('$items', () => Array.from({ length: items }, () => filled(item)).join(','));
    },
    batch: () => {
      const { items, mode = 'independent' } = target as { items: number; mode?: string };
      return `{"mode":"${mode}","items":[${Array.from({ length: items }, () => `{"transfer":${transfer()}}`).join(',')}]}`;
    },
  };
  const body = bodies[target.kind];
  return () => {
    const json = body();
    return `${post}${(count++).toString(36)}\r\ncontent-length: ${json.length}\r\n\r\n${json}`;
  };
}

function pick(items: readonly string[]): string {
  return items[Math.floor(Math.random() * items.length)] ?? '';
}
