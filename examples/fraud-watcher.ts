import { createConsumer } from '../clients/consumer/index.ts';
import { consume, settings } from './settings.ts';

/**
 * Detects suspicious transactions: the third withdrawal from an account within a minute, and large
 * amounts that leave an account. An alert is a line of JSON. It uses the time of the events, so a
 * watcher that was stopped finds the same alerts. Its memory of the last minute is lost with the
 * process; a new one begins after the last event that was handled.
 */
const { kafka, groupId, topicPrefix } = settings('fraud-watcher');
const windowMs = 60_000;
const withdrawalsInWindow = 3;
const largeAmount = 10_000;
const withdrawals = new Map<string, number[]>();

function alert(rule: string, account_id: string, transaction_id: string): void {
  console.log(JSON.stringify({ rule, account_id, transaction_id }));
}

await consume(
  createConsumer({
    kafka,
    groupId,
    topicPrefix,
    handlers: {
      'corebanking.transaction.completed.v1': ({ time, data: { transaction } }) => {
        const { account_id, transaction_id, transaction_type, direction, amount } = transaction;
        if (direction !== 'debit' || transaction_type === 'Loan Payment') return;
        // A threshold may be a double; amounts of money may not.
        if (Number(amount) >= largeAmount) alert('large_amount', account_id, transaction_id);
        if (transaction_type !== 'Withdrawal') return;
        const now = Date.parse(time);
        const recent = [...(withdrawals.get(account_id) ?? []), now].filter((at) => at > now - windowMs);
        withdrawals.set(account_id, recent);
        if (recent.length >= withdrawalsInWindow) alert('many_withdrawals', account_id, transaction_id);
      },
    },
  }),
);
