import { LRUCache } from 'lru-cache';

/** Keys with a model that were used lately, about 300 bytes each. */
const MOST = 10_000;
/** Output tokens of so many calls are remembered: the most of them is about the 95th percentile. */
const REMEMBERED = 20;
/** Assumed until calls were seen. */
const FIRST_OUTPUT = 4_096;
const FIRST_BYTES_PER_TOKEN = 3;
/** Sound and pictures, of which most bodies of forms consist. */
const FIRST_BYTES_PER_TOKEN_OF_FORM = 1_000;
/** The first assumption counts as much as a call with so many tokens. */
const FIRST_WEIGHT = 1_000;
/** Each call reduces the weight of those before it to this. */
const DECAY = 0.9;

/** What the last calls of a key with a model have used: from it, what the next one will use. */
export class Estimate {
  private bytes: number;
  private tokens = FIRST_WEIGHT;
  private readonly outputs = new Array<number>(REMEMBERED).fill(FIRST_OUTPUT);
  private next = 0;
  /** Output tokens that most calls stay below. */
  output = FIRST_OUTPUT;

  constructor(isForm: boolean) {
    this.bytes = FIRST_WEIGHT * (isForm ? FIRST_BYTES_PER_TOKEN_OF_FORM : FIRST_BYTES_PER_TOKEN);
  }

  input(bytes: number): number {
    return Math.ceil((bytes * this.tokens) / this.bytes);
  }

  /** A call has ended whose usage the provider reported. */
  add(bytes: number, input: number, output: number): void {
    this.bytes = this.bytes * DECAY + bytes;
    this.tokens = this.tokens * DECAY + input;
    this.outputs[this.next] = output;
    this.next = (this.next + 1) % REMEMBERED;
    this.output = Math.max(...this.outputs);
  }
}

/** The estimates of this process, by key and model. */
export class Estimates {
  private readonly known = new LRUCache<string, Estimate>({ maxSize: MOST, sizeCalculation: () => 1 });

  of(keyId: string, model: string, isForm: boolean): Estimate {
    const name = `${keyId} ${model}`;
    let estimate = this.known.get(name);
    if (estimate === undefined) this.known.set(name, (estimate = new Estimate(isForm)));
    return estimate;
  }
}
