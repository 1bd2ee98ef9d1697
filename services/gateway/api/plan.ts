import type { IdField } from '#libs/contracts/ids.ts';
import type { MessageData, MessageName } from '#libs/contracts/messages.ts';
import type { Transaction, Transfer } from '#libs/contracts/resources.ts';
import type { Caller } from '../access/caller.ts';
import type { Origin, Outcome } from './forward.ts';
import { pathId } from './unknown-ids.ts';

/**
 * The command for a writing request, with the data that its response needs. There is one planner per command endpoint.
 */
export interface Plan<N extends MessageName = MessageName> {
  name: N;
  /** The ce_id, which is also the idempotency record. */
  id: string;
  key: string;
  /** The bucket, if it is not that of the key. */
  bucket?: number;
  data: MessageData<N>;
  /** The ids that a caller receives if the outcome is unknown. */
  resource: Record<string, string>;
  location?: string;
  /**
   * Returns the resource to show while the outcome is unknown. `acceptedAt` is that of the first request
   * (acceptances.ts).
   */
  pending?(acceptedAt: Date): Transaction | Transfer;
  /** Runs before a success response and may extend the data. */
  finish?(data: unknown, replayed: boolean, origin: Origin): Promise<unknown>;
  /** Reads the outcome in another way if no reply arrived in time. */
  otherwise?(origin: Origin): Promise<Outcome | undefined>;
}

export interface Input<B = unknown> {
  params: Record<string, string>;
  body: B;
  caller: Caller;
  /** The 128 bits of the command's id: see ids.ts. */
  bits: string;
  acceptedAt: Date;
  /** The versions named by If-Match; undefined: any. */
  ifMatch?: string[] | undefined;
}

/** Plans a command under an id of its own about the resource whose id the path contains in this parameter. */
export function about<N extends MessageName>(
  name: N,
  parameter: IdField,
  { params, bits }: Pick<Input, 'params' | 'bits'>,
  data: (id: string) => MessageData<N>,
): Plan<N> {
  const id = pathId(parameter, params);
  return { name, id: `cmd_${bits}`, key: id, data: data(id), resource: { [parameter]: id } };
}
