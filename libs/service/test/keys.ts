import { replyType } from '#libs/contracts/envelope.ts';
import { EventKeys, MacKeys, type Signer } from '#libs/contracts/mac.ts';
import { maySend, messageOfType } from '#libs/contracts/messages.ts';

/** The keys of test banks, with which tests can send messages as services would. */
export const testMacSecrets: Record<Signer, string> = {
  gateway: 'the MAC key of gateways for tests alone',
  accounts: 'the MAC key of accounts for tests alone',
  ledger: 'the MAC key of ledgers for tests alone',
  webhooks: 'the MAC key of webhooks for tests alone',
};

export const testKeys = new MacKeys({
  gateway: [testMacSecrets.gateway],
  accounts: [testMacSecrets.accounts],
  ledger: [testMacSecrets.ledger],
  webhooks: [testMacSecrets.webhooks],
});

export const testEventKeys = new EventKeys([testMacSecrets.accounts]);

/** Returns the message with the MAC of the service that sends messages of its kind. */
export function signedForTest<M extends { headers: Record<string, string>; value: string | Buffer | null }>(
  message: M,
): M {
  const signed = { ...message, headers: { ...message.headers } };
  const type = message.headers['ce_type'] ?? '';
  const name = messageOfType(type);
  const isStep = name !== undefined && !maySend('gateway', name);
  testKeys.sign(type === replyType ? 'ledger' : isStep ? 'accounts' : 'gateway', signed);
  return signed;
}
