import { createConsumer } from '../clients/consumer/index.ts';
import { consume, settings } from './settings.ts';

/**
 * Notifies account holders: prints a line for each transaction, completed or failed, and for each
 * account that is frozen. Delivery is at least once; a repeated event has the same ce_id, and a
 * service that sends real messages should pass it on as idempotency key.
 */
const { kafka, groupId, topicPrefix } = settings('notifier');

function notify(account_id: string, id: string, text: string): void {
  console.log(`${account_id}: ${text} [${id}]`);
}

await consume(
  createConsumer({
    kafka,
    groupId,
    topicPrefix,
    handlers: {
      'corebanking.transaction.completed.v1': ({ id, data: { transaction, balance_after } }) => {
        const { account_id, transaction_type, direction, amount, currency } = transaction;
        notify(account_id, id, `${transaction_type} of ${amount} ${currency} (${direction}), balance ${balance_after}`);
      },
      'corebanking.transaction.failed.v1': ({ id, data: { transaction } }) => {
        const { account_id, transaction_type, amount, failure_code } = transaction;
        notify(account_id, id, `${transaction_type} of ${amount} refused: ${failure_code}`);
      },
      'corebanking.account.status_changed.v1': ({ id, data: { account_id, to_status, reason } }) => {
        if (to_status === 'Frozen') notify(account_id, id, `your account was frozen: ${reason}`);
      },
    },
  }),
);
