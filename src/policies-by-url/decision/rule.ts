import type { Grant } from '../../auth/caller.js';

/** `head`: facts of the call; `body`: its body as well. */
export type Sent = 'head' | 'body';
/** What happens to a call if its policy does not decide. */
export type OnFailure = 'reject' | 'allow';

/** What a policy is asked. */
export interface Question {
  /** Of the request. */
  readonly id: string;
  /** Value of `x-postern-call`. */
  readonly call: string;
  /** As the client sent it; null unless the policy gets it. */
  readonly body: Buffer | null;
  /** `content-type` and `content-encoding` of the body. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A response with status 200, of at most 64 KiB. */
export type ReceiverResponse = Buffer;

/** A policy by URL has not decided. */
export class PolicyFailure extends Error {
  override readonly name = 'PolicyFailure';

  /** @param code for metrics and alerts */
  constructor(
    readonly code: string,
    options?: ErrorOptions,
  ) {
    super(code, options);
  }
}

/** A policy by URL, as the decisions see it. A changed one is another object. */
export interface Rule {
  readonly id: string;
  readonly name: string;
  /** Another one after each change. */
  readonly revision: string;
  readonly send: Sent;
  readonly timeoutMs: number;
  readonly onFailure: OnFailure;
  readonly cacheSeconds: number;
  /** Patterns of models; null: it is asked about all calls. */
  readonly models: readonly string[] | null;
  /** True if it is asked about calls with this key. */
  concerns(grant: Grant): boolean;
  /** True if it is asked about calls to this model. */
  concernsModel(model: string): boolean;
  /**
   * Sends one request.
   *
   * @throws PolicyFailure if the receiver fails; GatewayError if it cannot be asked
   */
  ask(question: Question, signal: AbortSignal): Promise<ReceiverResponse>;
}

/** The policies by URL that there are now. */
export abstract class Rules {
  /** In the order in which they are asked; null: they were not read yet. */
  abstract readonly all: readonly Rule[] | null;
  /** Call in a constructor. */
  abstract onChange(listener: () => void): void;
}

/** Counts what became of each question. */
export abstract class DecisionLog {
  /** @param ms that the receiver took; null: an earlier decision counts */
  abstract decided(rule: Rule, isAllowed: boolean, ms: number | null): void;
  abstract failed(rule: Rule, code: string, ms: number): void;
  /** It was not asked, because too many calls wait for it. */
  abstract overloaded(rule: Rule): void;
}
