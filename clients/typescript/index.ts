export { createBank } from './bank.ts';
export type { Bank, BankOptions, CallOptions } from './bank.ts';
export { clientCredentials } from './credentials.ts';
export type { ClientCredentials, TokenProvider } from './credentials.ts';
export { ApprovalNeededError, BankError, NoAnswerError } from './errors.ts';
export type { Pages } from './pages.ts';
export type * from './operations.ts';
