import { addUp, type MetricValues } from '../observability/metrics.service.js';

/** A worker that does not answer by then is too busy; its last figures stand in. */
const ANSWER_MS = 1_000;

/** Types whose figures outlive the process that counted: without them a sum would go down when a worker dies. */
const LASTING = new Set(['counter', 'histogram']);

/** As addUp() keeps one: the figures, and how to ask for them. */
type Sum = MetricValues[number] & { get: () => MetricValues[number] };

interface Member {
  /** As it told them last. */
  figures: MetricValues;
  /** Questions that wait for its answer. */
  readonly waiting: Map<number, () => void>;
}

/**
 * Gathers the metrics of all workers for the one that was asked for them. A worker that dies or hangs fails nothing, and
 * what a dead one had counted when it last told stays in the sums.
 */
export class WorkerMetrics {
  private readonly members = new Map<number, Member>();
  private departed: MetricValues = [];
  private questions = 0;

  /** @param ask sends the worker in a place the question of this number */
  constructor(private readonly ask: (place: number, question: number) => void) {}

  /** A worker that can be asked. @param place its number */
  join(place: number): void {
    this.members.set(place, { figures: [], waiting: new Map() });
  }

  leave(place: number): void {
    const member = this.members.get(place);
    if (member === undefined) return;
    this.members.delete(place);
    for (const answered of member.waiting.values()) answered();
    const lasting = member.figures.filter(({ type }) => LASTING.has(String(type)));
    const sums = addUp([this.departed, lasting]).getMetricsAsArray() as unknown as Sum[];
    // A function cannot be sent to another process.
    this.departed = sums.map(({ get: _, ...figures }) => figures);
  }

  /** What a worker tells when asked. */
  told(place: number, question: number, figures: MetricValues): void {
    const member = this.members.get(place);
    if (member === undefined) return;
    member.figures = figures;
    member.waiting.get(question)?.();
  }

  /** The latest figures of all. */
  async gather(): Promise<MetricValues[]> {
    await Promise.all([...this.members].map(([place, member]) => this.askOne(place, member)));
    return [...[...this.members.values()].map(({ figures }) => figures), this.departed];
  }

  private askOne(place: number, { waiting }: Member): Promise<void> {
    const question = ++this.questions;
    return new Promise((resolve) => {
      const answered = () => {
        clearTimeout(timer);
        waiting.delete(question);
        resolve();
      };
      const timer = setTimeout(answered, ANSWER_MS);
      waiting.set(question, answered);
      this.ask(place, question);
    });
  }
}
