import { pause } from '../wait.ts';

interface Broker {
  findGroupCoordinator(args: unknown): Promise<CoordinatorAnswer>;
}

interface CoordinatorAnswer {
  coordinator: { nodeId: number };
}

/** What the patch touches of kafkajs' Cluster. */
interface Cluster {
  brokerPool: { brokers: Record<string, unknown>; findBroker(args: { nodeId: string }): Promise<Broker> };
  findGroupCoordinator(args: unknown): Promise<unknown>;
  findGroupCoordinatorMetadata(args: unknown): Promise<unknown>;
  refreshMetadata(): Promise<void>;
}

/** What the patch touches of kafkajs' BrokerPool. */
interface BrokerPool {
  brokers: Record<string, unknown>;
  metadataExpireAt: number | null;
  removeBroker(address: unknown): void;
}

const coordinatorPauseMs = 100;

/**
 * Mends the two faults that kafkajs takes for final and that pass, and whom it believes about a
 * coordinator. Throws when kafkajs is not what this was written against.
 */
export function keepBrokers(require: NodeJS.Require): void {
  waitForCoordinator(require);
  believeOthers(require);
  keepLastBroker(require);
}

/**
 * kafkajs asks one broker at random who coordinates a group. One that is cut off from the others
 * goes on naming itself, so all are asked, and the first one that names another broker is believed;
 * one that names itself only where nobody says more.
 */
function believeOthers(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/cluster/index') as { prototype: Cluster };
  const { KafkaJSGroupCoordinatorNotFound } = require('kafkajs/src/errors') as {
    KafkaJSGroupCoordinatorNotFound: new (message: string) => Error;
  };
  if (typeof prototype.findGroupCoordinatorMetadata !== 'function')
    throw new Error('kafkajs Cluster has no findGroupCoordinatorMetadata');
  prototype.findGroupCoordinatorMetadata = async function find(
    this: Cluster,
    args: unknown,
  ): Promise<CoordinatorAnswer> {
    let ofItself: CoordinatorAnswer | undefined;
    const ask = async (nodeId: string): Promise<CoordinatorAnswer> => {
      const broker = await this.brokerPool.findBroker({ nodeId });
      const answer = await broker.findGroupCoordinator(args);
      if (String(answer.coordinator.nodeId) !== nodeId) return answer;
      ofItself = answer;
      throw new Error('it names itself');
    };
    return Promise.any(Object.keys(this.brokerPool.brokers).map(ask)).catch((error: unknown) => {
      if (ofItself) return ofItself;
      throw new KafkaJSGroupCoordinatorNotFound(`no broker names a group coordinator: ${String(error)}`);
    });
  };
}

/**
 * A consumer gave up for good when its coordinator could not be asked because connections were cut,
 * though not when they were refused: and its successor, a new member, waited for the session
 * time-out of the old one. Both are a broker that is away. What ends a consumer, here too, is a
 * gate that was closed: no address is left then, which kafkajs does not retry.
 */
function waitForCoordinator(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/cluster/index') as { prototype: Cluster };
  const { findGroupCoordinator } = prototype;
  if (typeof findGroupCoordinator !== 'function' || typeof prototype.refreshMetadata !== 'function')
    throw new Error('kafkajs Cluster has no findGroupCoordinator');
  prototype.findGroupCoordinator = async function find(this: Cluster, args: unknown): Promise<unknown> {
    for (;;) {
      try {
        return await findGroupCoordinator.call(this, args);
      } catch (error) {
        if ((error as Error).name !== 'KafkaJSGroupCoordinatorNotFound') throw error;
        await pause(coordinatorPauseMs);
        await this.refreshMetadata().catch((failure: { retriable?: boolean }) => {
          if (failure.retriable === false) throw failure;
        });
      }
    }
  };
}

/**
 * A broker whose connection was closed is forgotten, and a consumer that knows none any more gives
 * up for good. So the last one is kept: it is connected again when it is back, and asked where the
 * others are.
 */
function keepLastBroker(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/cluster/brokerPool') as { prototype: BrokerPool };
  const { removeBroker } = prototype;
  if (typeof removeBroker !== 'function') throw new Error('kafkajs BrokerPool has no removeBroker');
  prototype.removeBroker = function remove(this: BrokerPool, address: unknown): void {
    if (Object.keys(this.brokers).length > 1) removeBroker.call(this, address);
    else this.metadataExpireAt = null;
  };
}
