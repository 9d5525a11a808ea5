import { ADMIN_TOKEN } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';

/** What `/metrics` says: each series, as it is written, with its value. */
export class Scrape {
  private constructor(
    readonly text: string,
    readonly series: ReadonlyMap<string, number>,
  ) {}

  static async of(url: string, token = ADMIN_TOKEN): Promise<Scrape> {
    // A connection of its own: with several workers, the system hands it to any of them.
    const client = await RawClient.connect(Number(new URL(url).port));
    client.send(request('GET /metrics', [`Authorization: Bearer ${token}`]));
    const { status, body } = await client.answer();
    client.destroy();
    const text = body.toString();
    if (status !== 200) throw new Error(`${status} ${text}`);
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const series = lines.map((line): [string, number] => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    });
    return new Scrape(text, new Map(series));
  }

  /** Sum of the series of this name whose labels all have these values. */
  sum(name: string, labels: Record<string, string> = {}): number {
    const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
    let sum = 0;
    for (const [series, value] of this.series) {
      const [own, ...rest] = series.split('{');
      const held = rest.join('{').replace(/}$/, '').split(',');
      if (own === name && wanted.every((label) => held.includes(label))) sum += value;
    }
    return sum;
  }

  /** Names with the types they are declared with. */
  get types(): Map<string, string> {
    return new Map([...this.text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name!, type!]));
  }

  /** The gateway's own series. */
  get own(): string[] {
    return [...this.series.keys()].filter((series) => series.startsWith('postern_')).sort();
  }
}
