import type { AssignerProtocol, PartitionAssigner } from 'kafkajs';
import type { Logger } from 'pino';
import type { KafkaClient } from '../client.ts';
import { pause } from '../wait.ts';
import { busyLimit, chooseWorkers, isWorking, type Member, shareOut } from './filling.ts';

/** What a member of a group with hot spares tells the others about itself. */
export interface FillOptions {
  /** Returns the CPU that this process uses, in cores, averaged over some seconds. */
  busy(): number;
  /** Reports whether this process has other work of its own, for which it should be used last. */
  keeps(): boolean;
  /** The least time between a rebalance and one that this member causes. Default 30 s. */
  pauseMs?: number;
}

type Told = Omit<Member, 'id'>;

const fillingName = 'FillingAssigner';
const defaultPauseMs = 30_000;
const longestAskMs = 5_000;

/** A member's part in a group in which as few members as possible work (filling.ts). Its group has one topic. */
export class Spares {
  readonly #kafka: KafkaClient;
  readonly #groupId: string;
  readonly #options: Required<FillOptions>;
  readonly #logger: Logger;
  #memberId = '';
  /** The lowest partition of the present or last assignment. */
  #first: number | undefined;
  #step = 0;
  /** The members of the present generation as they announced themselves, with what they have now. */
  #members: Member[] | undefined;
  #isFilled = false;
  #joinedAt = -Infinity;
  #workersBefore = '';
  /** How busy this member was when it asked for the next rebalance, if it has. */
  #askedAt: number | undefined;
  /** How busy it was when it last asked in vain for others to work with fewer. */
  #inVainAt = Infinity;

  constructor(kafka: KafkaClient, groupId: string, options: FillOptions, logger: Logger) {
    this.#kafka = kafka;
    this.#groupId = groupId;
    this.#options = { pauseMs: defaultPauseMs, ...options };
    this.#logger = logger;
  }

  /**
   * The protocols that this member announces. The broker chooses one that all members have: during a rolling upgrade that
   * of the release before, which shares the partitions equally.
   */
  assigners(): PartitionAssigner[] {
    const { AssignerProtocol: protocol, PartitionAssigners } = this.#kafka.kafkajs;
    return [this.#filling(protocol), PartitionAssigners.roundRobin];
  }

  #filling({ MemberMetadata, MemberAssignment }: typeof AssignerProtocol): PartitionAssigner {
    return ({ cluster }) => ({
      name: fillingName,
      version: 0,
      protocol: ({ topics }) => {
        const mine: Told = { busy: this.#busy(), keeps: this.#options.keeps(), first: this.#first, step: this.#step };
        const userData = Buffer.from(JSON.stringify(mine));
        return { name: fillingName, metadata: MemberMetadata.encode({ version: 0, topics, userData }) };
      },
      assign: async ({ members, topics: [topic = ''] }) => {
        const known = members.map(({ memberId, memberMetadata }) => this.#read(memberId, memberMetadata));
        const { workers } = chooseWorkers(known);
        const partitions = cluster
          .findTopicPartitionMetadata(topic)
          .map(({ partitionId }) => partitionId)
          .sort((a, b) => a - b);
        const shares = shareOut(workers, partitions);
        this.#logger.info({ members: known, shares: Object.fromEntries(shares) }, 'shared out the partitions');
        return [...shares].map(([memberId, share]) => ({
          memberId,
          memberAssignment: MemberAssignment.encode({
            version: 0,
            assignment: { [topic]: share },
            userData: Buffer.of(),
          }),
        }));
      },
    });
  }

  /** Rounded, because a join that is repeated with other words begins another rebalance. */
  #busy(): number {
    return Math.round(20 * this.#options.busy()) / 20;
  }

  #read(id: string, metadata: Buffer): Member {
    const { userData } = this.#kafka.kafkajs.AssignerProtocol.MemberMetadata.decode(metadata) ?? {};
    return { id, ...parse(userData) };
  }

  /** Must be called after each join, with the partitions of this member. */
  joined(memberId: string, partitions: readonly number[]): void {
    this.#memberId = memberId;
    this.#first = lowest(partitions);
    this.#joinedAt = performance.now();
    this.#members = undefined;
    void this.#describe(this.#joinedAt);
  }

  /** Must be called when this member has left: it announces nothing of its last membership. */
  left(): void {
    this.#first = undefined;
    this.#step = 0;
    this.#members = undefined;
    this.#joinedAt = -Infinity;
  }

  /** The members of the group, or undefined if they are not known. */
  get members(): readonly Member[] | undefined {
    return this.#members;
  }

  /** Only the leader is told who the members are, so the others ask. */
  async #describe(joinedAt: number): Promise<void> {
    for (let attempt = 1; joinedAt === this.#joinedAt; attempt++) {
      try {
        const { groups } = await this.#kafka.withAdmin((admin) => admin.describeGroups([this.#groupId]));
        const [group] = groups;
        if (joinedAt !== this.#joinedAt) return;
        if (group?.state === 'Stable' && group.members.some(({ memberId }) => memberId === this.#memberId))
          return this.#learn(group.protocol, group.members);
      } catch (error) {
        this.#logger.debug({ err: error }, 'cannot ask for the members of the group');
      }
      await pause(Math.min(attempt * 500, longestAskMs));
    }
  }

  #learn(protocol: string, members: { memberId: string; memberMetadata: Buffer; memberAssignment: Buffer }[]): void {
    const { MemberAssignment } = this.#kafka.kafkajs.AssignerProtocol;
    const present = members.map(({ memberId, memberMetadata, memberAssignment }) => {
      const share = Object.values(MemberAssignment.decode(memberAssignment)?.assignment ?? {}).flat();
      return { ...this.#read(memberId, memberMetadata), first: lowest(share) };
    });
    const working = present.filter(isWorking);
    const isKeeperAlone = working.length === 1 && working[0]?.keeps === true;
    this.#isFilled = protocol === fillingName;
    const step = this.#isFilled && !isKeeperAlone ? working.length : 0;
    this.#step = step;
    this.#members = present.map((member) => ({ ...member, step }));
    const workers = working.map(({ id }) => id).sort();
    const isSame = workers.join() === this.#workersBefore;
    this.#workersBefore = workers.join();
    this.#inVainAt = isSame ? (this.#askedAt ?? this.#inVainAt) : Infinity;
    this.#askedAt = undefined;
  }

  /**
   * Reports whether the partitions would be shared out differently now, as far as this member can know: it judges the others
   * by what they announced, or by itself if they were busier then. Only a member that works asks for a rebalance. One that has
   * asked in vain asks again when it is calmer than then, or too busy: a rebalance delays what is being executed.
   */
  wantsRebalance(): boolean {
    const [members, busy, keeps] = [this.#members, this.#busy(), this.#options.keeps()];
    if (!members || !this.#isFilled || this.#first === undefined) return false;
    if (performance.now() - this.#joinedAt < this.#options.pauseMs) return false;
    if (busy <= busyLimit && busy >= this.#inVainAt) return false;
    const now = members.map((member) => {
      if (member.id === this.#memberId) return { ...member, busy, keeps };
      return { ...member, busy: Math.min(member.busy, busy), keeps: member.keeps && !keeps };
    });
    const wanted = new Set(chooseWorkers(now).workers.map(({ id }) => id));
    const working = now.filter(isWorking);
    if (working.length === wanted.size && working.every(({ id }) => wanted.has(id))) return false;
    this.#askedAt = busy;
    return true;
  }
}

const lowest = (partitions: readonly number[]): number | undefined =>
  partitions.length > 0 ? Math.min(...partitions) : undefined;

/** Reads what a member announced. One of another version may announce anything. */
function parse(userData: Buffer | undefined): Told {
  let found: unknown;
  try {
    found = JSON.parse(String(userData));
  } catch {
    // One that announces nothing is not busy.
  }
  const { busy, keeps, first, step } = (found ?? {}) as Partial<Record<keyof Told, unknown>>;
  return {
    busy: typeof busy === 'number' ? busy : 0,
    keeps: keeps === true,
    first: typeof first === 'number' ? first : undefined,
    step: typeof step === 'number' ? step : 0,
  };
}
