export type { Bank, BankOptions } from './bank.ts';
export { createBank } from './bank.ts';
export type { CallOptions, Lines, Pages } from './call.ts';
export type { ClientCredentials, TokenProvider } from './credentials.ts';
export { clientCredentials } from './credentials.ts';
export { ApprovalNeededError, BankError, NoAnswerError } from './errors.ts';
export type * from './operations.ts';
