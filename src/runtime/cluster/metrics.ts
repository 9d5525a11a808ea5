import { addUp, type MetricValues } from '../../observability/metrics.service.js';
import { patience } from '../../platform/patience.js';

/** A worker that does not respond in this time is too busy; its last values are used. */
const RESPONSE = patience('metrics of a worker', 1_000);

/** Types whose values are kept after a worker dies: otherwise a sum would go down. */
const CUMULATIVE = new Set(['counter', 'histogram']);

/** An entry of addUp(): the values and a function that returns them. */
type Sum = MetricValues[number] & { get: () => MetricValues[number] };

interface Member {
  /** The last values it sent. */
  values: MetricValues;
  /** Requests that wait for its response, by number. */
  readonly waiting: Map<number, () => void>;
}

/**
 * Gathers the metrics of all workers for a worker that is scraped. A worker that dies or hangs causes no error, and the
 * last values of a dead worker stay in the sums.
 */
export class WorkerMetrics {
  private readonly members = new Map<number, Member>();
  private departed: MetricValues = [];
  private requests = 0;

  /** @param ask sends a request with this number to a worker */
  constructor(private readonly ask: (slot: number, request: number) => void) {}

  /** Adds a worker. @param slot its number */
  join(slot: number): void {
    this.members.set(slot, { values: [], waiting: new Map() });
  }

  leave(slot: number): void {
    const member = this.members.get(slot);
    if (member === undefined) return;
    this.members.delete(slot);
    for (const done of member.waiting.values()) done();
    const lasting = member.values.filter(({ type }) => CUMULATIVE.has(String(type)));
    const sums = addUp([this.departed, lasting]).getMetricsAsArray() as unknown as Sum[];
    // Functions cannot be sent to another process.
    this.departed = sums.map(({ get: _, ...values }) => values);
  }

  /** Takes the values that a worker sent. */
  receive(slot: number, request: number, values: MetricValues): void {
    const member = this.members.get(slot);
    if (member === undefined) return;
    member.values = values;
    member.waiting.get(request)?.();
  }

  /** The latest values of all workers. */
  async gather(): Promise<MetricValues[]> {
    await Promise.all([...this.members].map(([slot, member]) => this.askOne(slot, member)));
    return [...[...this.members.values()].map(({ values }) => values), this.departed];
  }

  private askOne(slot: number, { waiting }: Member): Promise<void> {
    const request = ++this.requests;
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        waiting.delete(request);
        resolve();
      };
      const timer = setTimeout(done, RESPONSE.ms);
      waiting.set(request, done);
      this.ask(slot, request);
    });
  }
}
