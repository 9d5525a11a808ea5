import { randomBytes } from 'node:crypto';
import { JobChecks } from '../../src/jobs/job-checks.service.js';
import type { JobView } from '../../src/jobs/jobs.schema.js';
import { FakeProvider, type FakeRequest, type FakeResponder } from '../../src/testing/fake-provider.js';
import { eventually } from '../support/eventually.js';
import { type LogRowView, startTestGateway, type TestGateway } from '../support/gateway.js';
import type { TestDatabase } from '../support/database.js';

/** A provider that a test fills: what it responds by method and path. */
export class JobProvider {
  readonly paths = new Map<string, FakeResponder>();

  private constructor(readonly fake: FakeProvider) {
    fake.respond((request) => {
      const found = this.paths.get(`${request.method} ${request.url}`);
      if (found === undefined) return { status: 404, json: { error: { message: 'no such path' } } };
      return typeof found === 'function' ? found(request) : found;
    });
  }

  static async start(): Promise<JobProvider> {
    return new JobProvider(await FakeProvider.start());
  }

  asked(path: string): FakeRequest[] {
    return this.fake.requests.filter(({ method, url }) => method === 'GET' && url === path);
  }
}

export const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');

export class JobGateway {
  constructor(
    readonly postern: TestGateway,
    readonly provider: JobProvider,
  ) {}

  static async start(variables: Record<string, string> = {}, shared?: TestDatabase, provider?: JobProvider) {
    const upstream = provider ?? (await JobProvider.start());
    const postern = await startTestGateway(
      { PROVIDER_URL: upstream.fake.url, MASTER_KEY, ...variables },
      shared,
    );
    if (shared === undefined) {
      for (const model of ['m', 'n'])
        await postern.admin('POST', '/prices', {
          catalog: 'default',
          model,
          input: '1',
          output: '10',
          tiers: [{ service_tier: 'batch', input: '0.5', output: '5' }],
        });
    }
    return new JobGateway(postern, upstream);
  }

  async stop(): Promise<void> {
    await this.postern.stop();
    await this.provider.fake.stop();
  }

  /** @param members of the key */
  async key(members: object = {}): Promise<{ id: string; key: string }> {
    const name = randomBytes(6).toString('hex');
    return this.postern.admin('POST', '/keys', { team: 'default', name, endpoints: 'all', ...members });
  }

  /** Sends a call, with a body if it is a POST. @returns the ID of its row */
  async send(key: string, method: string, path: string, body: object = {}): Promise<string> {
    const response = await fetch(this.postern.url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(method === 'POST' && { body: JSON.stringify(body) }),
    });
    await response.arrayBuffer();
    expect([response.headers.get('x-gateway-error'), response.status]).toEqual([null, 200]);
    return response.headers.get('x-gateway-request-id')!;
  }

  /** Sends a call that creates a job. @param created what the provider responds */
  async create(key: string, path: string, created: object, body: object = {}, to = path): Promise<string> {
    this.provider.paths.set(`POST ${path}`, { json: created });
    const id = await this.send(key, 'POST', to, body);
    await eventually(async () => (await this.job(id)) !== undefined);
    return id;
  }

  async jobs(): Promise<JobView[]> {
    return (await this.postern.admin<{ data: JobView[] }>('GET', '/jobs?limit=500')).data;
  }

  async job(id: string): Promise<JobView | undefined> {
    return (await this.jobs()).find((job) => job.id === id);
  }

  /** Asks the provider for a job now. */
  async check(id: string): Promise<JobView> {
    await this.postern.admin('POST', `/jobs/${id}/check`, {});
    const checks = this.postern.gateway.app.get(JobChecks, { strict: false });
    await eventually(async () => {
      await checks.run();
      const { next_check_at: next } = (await this.job(id))!;
      return next === null || Date.parse(next) > Date.now();
    });
    // The gateway's own check may be between its settlement and what follows that.
    const busy = Reflect.get(checks, 'busy') as ReadonlyMap<string, Promise<void>>;
    await Promise.allSettled(busy.values());
    return (await this.job(id))!;
  }

  row(id: string): Promise<LogRowView> {
    return this.postern.row(id);
  }

  /** What was used of the only budget of a key. */
  async used(keyId: string): Promise<string> {
    const { data } = await this.postern.admin<{ data: { used: string }[] }>('GET', `/limits?key=${keyId}`);
    return data[0]!.used;
  }
}
