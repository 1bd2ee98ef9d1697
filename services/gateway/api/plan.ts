import type { z } from 'zod';
import type { EndpointName, endpoints } from '#libs/contracts/endpoints.ts';
import { formatId, type IdField, kindFromField } from '#libs/contracts/ids.ts';
import type { MessageData, MessageName } from '#libs/contracts/messages.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import type { Transfer } from '#libs/contracts/transfers.ts';
import type { Caller } from '../access/caller.ts';
import { pathId } from '../http/unknown-ids.ts';
import type { Command, Origin } from '../messages/encode.ts';
import type { Outcome } from './forward.ts';

type Endpoints = typeof endpoints;

/** The endpoints that send a command of the same name. A batch has a handler of its own. */
export type WriteName = Exclude<
  { [N in EndpointName]: Endpoints[N]['method'] extends 'GET' ? never : N }[EndpointName] & MessageName,
  'create_batch'
>;

/** The command for a writing request, with the data that its response needs. */
export interface Plan<N extends MessageName = MessageName> extends Omit<Command<N>, 'data' | 'acceptedAt'> {
  data: MessageData<N>;
  /** The ids that a caller receives if the outcome is unknown. */
  resource: Record<string, string>;
  location?: string;
  /**
   * Returns the resource to show while the outcome is unknown. `acceptedAt` is that of the first request
   * (first-acceptance-times.ts).
   */
  pending?(acceptedAt: Date): Transaction | Transfer;
  /** Runs before the command is sent. If it returns an outcome, the command is not sent. */
  precondition?(origin: Origin): Promise<Outcome | undefined>;
  /** A secret that is shown once, also with the approval for which the request waits. */
  secret?: string;
  /** Runs before a success response and may extend the data. */
  enrichResponse?(data: unknown, replayed: boolean, origin: Origin): Promise<unknown>;
  /** Reads the outcome in another way if no reply arrived in time. */
  fallbackRead?(origin: Origin): Promise<Outcome | undefined>;
}

export interface Input<B = unknown> {
  params: Record<string, string>;
  /** The body as parsed by the endpoint's schema. */
  body: B;
  caller: Caller;
  /** The 128 bits of the command's id: see ids.ts. */
  bits: string;
  acceptedAt: Date;
  /** The versions named by If-Match; undefined: any. */
  ifMatch?: string[] | undefined;
}

type BodyOf<N extends EndpointName> = Endpoints[N] extends { body: infer S extends z.ZodType } ? z.output<S> : unknown;

/** One planner for each write. Throws a Refused if the caller may not do this, or if an id is malformed. */
export type Planners = { [N in WriteName]: (input: Input<BodyOf<N>>) => Omit<Plan<N>, 'name'> };

/** Plans a command under an id of its own about the resource whose id the path contains in this parameter. */
export function planFor<D>(
  parameter: IdField,
  { params, bits }: Pick<Input, 'params' | 'bits'>,
  data: (id: string) => D,
) {
  const id = pathId(parameter, params);
  return { id: `cmd_${bits}`, key: id, data: data(id), resource: { [parameter]: id } };
}

const paths = {
  client_id: '/clients',
  account_id: '/accounts',
  transaction_id: '/transactions',
  transfer_id: '/transfers',
  hold_id: '/holds',
  key_id: '/admin/api-keys',
  webhook_id: '/webhooks',
  till_id: '/tills',
};

/** Plans a command that creates a resource, whose id has these bits and is also that of the command. */
export function planCreate<D>(field: keyof typeof paths, bits: string, data: (id: string) => D, key?: string) {
  const id = formatId(kindFromField(field), bits);
  return { id, key: key ?? id, data: data(id), resource: { [field]: id }, location: `${paths[field]}/${id}` };
}
