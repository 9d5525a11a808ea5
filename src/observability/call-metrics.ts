import { Injectable } from '@nestjs/common';
import { type FinishedCall, FinishedCalls } from '../request-log/finished-calls.js';
import { type Outcome, OUTCOMES } from '../request-log/request-log.entity.js';
import { DurationMetric, Durations } from './durations.js';
import type { Instruments } from './instruments.js';

/** Histogram bounds in seconds: for what the gateway adds, and for what a model takes. */
const OVERHEAD = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5];
const RESPONSES = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];

/** Status classes by first digit; 0: the client got no status, or one outside 100 to 599. */
const CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx'] as const;
const PLACES = new Map<Outcome, number>(OUTCOMES.map((outcome, i) => [outcome, i * CLASSES.length]));
const TOKENS = [
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
] as const;

/** Series limit: providers beyond this number share one label. */
const MAX_PROVIDERS = 100;
const OTHER_PROVIDERS = 'others';

class ProviderFigures {
  /** By outcome and class of status. */
  readonly calls = new Float64Array(OUTCOMES.length * CLASSES.length);
  readonly tokens = new Float64Array(TOKENS.length);
  readonly overhead = new Durations(OVERHEAD);
  readonly firstByte = new Durations(RESPONSES);
  readonly duration = new Durations(RESPONSES);
}

/** Counts finished calls. Labels are configured names and fixed values, never anything that a client sent. */
@Injectable()
export class CallMetrics {
  private readonly providers = new Map<string, ProviderFigures>();

  constructor(finished: FinishedCalls) {
    finished.listen('metrics', (call) => this.count(call));
  }

  register(instruments: Instruments): void {
    instruments.counter(
      'postern_calls_total',
      'Calls that were forwarded or replayed, by how they ended. The same calls as rows in request_log.',
      () => this.calls(),
      'provider',
      'status',
      'outcome',
    );
    instruments.counter(
      'postern_tokens_total',
      'Tokens as the providers report them.',
      () => this.tokens(),
      'provider',
      'kind',
    );
    const histogram = (name: string, help: string, pick: (figures: ProviderFigures) => Durations) =>
      instruments.histogram(new DurationMetric(name, help, ['provider'], () => this.durations(pick)));
    histogram(
      'postern_call_overhead_seconds',
      'From the request head to forwarding, without waiting for a small body.',
      ({ overhead }) => overhead,
    );
    histogram(
      'postern_call_first_byte_seconds',
      'From the request head to the response head.',
      ({ firstByte }) => firstByte,
    );
    histogram(
      'postern_call_duration_seconds',
      'From the request head to the last byte of the response.',
      ({ duration }) => duration,
    );
  }

  private count({ row, overheadMs }: FinishedCall): void {
    const figures = this.figuresOf(row.provider);
    const digit = row.status === null || row.status > 599 ? 0 : Math.floor(row.status / 100);
    figures.calls[PLACES.get(row.outcome)! + digit]!++;
    // The tokens of a stored response were counted with the call that stored it.
    if (row.outcome !== 'cached')
      for (let i = 0; i < TOKENS.length; i++) figures.tokens[i]! += row[TOKENS[i]!] ?? 0;
    if (overheadMs !== null) figures.overhead.add(overheadMs);
    // The client does not see how long it took; the next attempt has the time of both.
    if (row.outcome === 'retried') return;
    if (row.ttfb_ms !== null) figures.firstByte.add(row.ttfb_ms);
    if (row.duration_ms !== null) figures.duration.add(row.duration_ms);
  }

  private figuresOf(provider: string): ProviderFigures {
    const known = this.providers.get(provider);
    if (known !== undefined) return known;
    if (this.providers.size >= MAX_PROVIDERS && provider !== OTHER_PROVIDERS)
      return this.figuresOf(OTHER_PROVIDERS);
    const made = new ProviderFigures();
    this.providers.set(provider, made);
    return made;
  }

  private *calls(): Iterable<[Record<string, string>, number]> {
    for (const [provider, { calls }] of this.providers) {
      for (const [outcome, place] of PLACES) {
        for (const [digit, status] of CLASSES.entries()) {
          const count = calls[place + digit]!;
          if (count > 0) yield [{ provider, status, outcome }, count];
        }
      }
    }
  }

  private *tokens(): Iterable<[Record<string, string>, number]> {
    for (const [provider, { tokens }] of this.providers) {
      for (const [i, name] of TOKENS.entries()) {
        yield [{ provider, kind: name.slice(0, -'_tokens'.length) }, tokens[i]!];
      }
    }
  }

  private *durations(
    pick: (figures: ProviderFigures) => Durations,
  ): Iterable<[Record<string, string>, Durations]> {
    for (const [provider, figures] of this.providers) yield [{ provider }, pick(figures)];
  }
}
