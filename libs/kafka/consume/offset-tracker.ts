/** A sequence of messages of one partition that is being processed. */
export interface Chunk {
  topic: string;
  partition: number;
  /** The offset to commit when this chunk and all earlier ones are done. */
  nextOffset: bigint;
  done: boolean;
}

interface PartitionState {
  topic: string;
  partition: number;
  chunks: Chunk[];
  position: bigint | undefined;
  dirty: boolean;
}

export interface Position {
  topic: string;
  partition: number;
  offset: bigint;
}

/** Tracks which offsets may be committed: in each partition only up to the first unfinished chunk. */
export class OffsetTracker {
  readonly #partitions = new Map<string, PartitionState>();

  begin(topic: string, partition: number, nextOffset: bigint): Chunk {
    const chunk: Chunk = { topic, partition, nextOffset, done: false };
    this.#state(topic, partition).chunks.push(chunk);
    return chunk;
  }

  done(chunk: Chunk): void {
    chunk.done = true;
    const state = this.#state(chunk.topic, chunk.partition);
    while (state.chunks[0]?.done) {
      state.position = (state.chunks.shift() as Chunk).nextOffset;
      state.dirty = true;
    }
  }

  /** Returns the positions that changed since the last call. */
  takeDirty(): Position[] {
    const moved: Position[] = [];
    for (const state of this.#partitions.values()) {
      if (!state.dirty || state.position === undefined) continue;
      state.dirty = false;
      moved.push({ topic: state.topic, partition: state.partition, offset: state.position });
    }
    return moved;
  }

  /** Makes takeDirty return these positions again, after a failed commit. */
  markDirty(positions: readonly Position[]): void {
    for (const { topic, partition } of positions) this.#state(topic, partition).dirty = true;
  }

  #state(topic: string, partition: number): PartitionState {
    const key = `${partition} ${topic}`;
    let state = this.#partitions.get(key);
    if (!state) {
      state = { topic, partition, chunks: [], position: undefined, dirty: false };
      this.#partitions.set(key, state);
    }
    return state;
  }
}
