import { pause } from '../wait.ts';

interface Broker {
  findGroupCoordinator(args: unknown): Promise<CoordinatorAnswer>;
}

interface CoordinatorAnswer {
  coordinator: { nodeId: number };
}

/** The part of kafkajs' Cluster that is patched. */
interface Cluster {
  brokerPool: { brokers: Record<string, unknown>; findBroker(args: { nodeId: string }): Promise<Broker> };
  findGroupCoordinator(args: unknown): Promise<unknown>;
  findGroupCoordinatorMetadata(args: unknown): Promise<unknown>;
  refreshMetadata(): Promise<void>;
}

/** The part of kafkajs' BrokerPool that is patched. */
interface BrokerPool {
  brokers: Record<string, unknown>;
  metadataExpireAt: number | null;
  removeBroker(address: unknown): void;
}

const coordinatorPauseMs = 100;

/**
 * Patches how kafkajs handles lost brokers: two temporary failures that it considers final, and the choice of
 * the broker that it trusts about a coordinator.
 */
export function keepBrokers(require: NodeJS.Require): void {
  waitForCoordinator(require);
  believeOthers(require);
  keepLastBroker(require);
}

/**
 * kafkajs asks one random broker for the coordinator of a group. A broker that is cut off from the others keeps
 * naming itself. This asks all brokers and accepts the first response that names another broker. A broker that
 * names itself is accepted only if no other responds.
 */
function believeOthers(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/cluster/index') as { prototype: Cluster };
  const { KafkaJSGroupCoordinatorNotFound } = require('kafkajs/src/errors') as {
    KafkaJSGroupCoordinatorNotFound: new (message: string) => Error;
  };
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
 * A consumer stopped permanently if connections were cut while it looked for its coordinator, but not if they
 * were refused. Its successor, a new member, then waited for the session timeout of the old one. This treats
 * both cases as an unreachable broker. A closed gate still ends the consumer: the error then has no address,
 * and kafkajs does not retry it.
 */
function waitForCoordinator(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/cluster/index') as { prototype: Cluster };
  const { findGroupCoordinator } = prototype;
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
 * kafkajs removes a broker whose connection was closed, and a consumer without a broker stops permanently. This
 * keeps the last broker, which is reconnected when it is back and then asked for the others.
 */
function keepLastBroker(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/cluster/brokerPool') as { prototype: BrokerPool };
  const { removeBroker } = prototype;
  prototype.removeBroker = function remove(this: BrokerPool, address: unknown): void {
    if (Object.keys(this.brokers).length > 1) removeBroker.call(this, address);
    else this.metadataExpireAt = null;
  };
}
