import { readResults, ResultsIncompleteError, ResultsTooLargeError } from '../bodies/jobs/batch-results.js';
import { readJob } from '../bodies/jobs/seen-job.js';
import type { SeenJob } from '../bodies/usage/token-usage.js';
import type { Provider } from '../providers/provider.js';
import type { ProviderReader, ProviderResponse } from '../providers/provider-reader.js';
import { patience } from '../platform/patience.js';

/** A job itself is small, unless it has its results inside. */
const MAX_JOB_BYTES = 8 * 1024 * 1024;
const JOB = patience('the state of a job', 60_000);
const RESULTS = patience('the results of a job', 1_800_000);
const NOTHING = Buffer.alloc(0);
/** Azure OpenAI's endpoints without `/v1` in their path need a version (its REST reference), behind any host. */
const AZURE_VERSIONS: Record<string, string> = { batch: '2024-10-21', response: '2025-04-01-preview' };

/** Why a check has found nothing out. */
export class JobProblem extends Error {
  override readonly name = 'JobProblem';

  /** @param isFinal a further check would find the same */
  constructor(
    readonly code: string,
    readonly isFinal = false,
  ) {
    super(code);
  }
}

/** Asks providers for jobs and their results. */
export class JobReader {
  constructor(
    private readonly reader: ProviderReader,
    /** Waits until another request may be made. */
    private readonly turn: () => Promise<void>,
    private readonly stopping: AbortSignal,
  ) {}

  /** @throws JobProblem, and errors of the connection */
  async job(provider: Provider, path: string): Promise<SeenJob> {
    const kind = /\/responses\/[^/]+$/.test(path) ? 'response' : 'batch';
    const version = isOldAzure(provider, path) ? `?api-version=${AZURE_VERSIONS[kind]}` : '';
    const body = await this.get(provider, `${path}${version}`, JOB.ms, wholeBody);
    const job = readJob({ head: body, tail: NOTHING, whole: true }, path);
    if (job === null || job.path !== path) throw new JobProblem('unreadable');
    return job;
  }

  /** The usage of all results. @throws the same */
  results(provider: Provider, { path, count }: NonNullable<SeenJob['results']>) {
    const version = isOldAzure(provider, path) ? `?api-version=${AZURE_VERSIONS.batch}` : '';
    return this.get(provider, `${path}${version}`, RESULTS.ms, ({ body }) => readResults(body, count)).catch(
      (error: unknown) => {
        if (error instanceof ResultsTooLargeError) throw new JobProblem('too_large', true);
        throw error instanceof ResultsIncompleteError ? new JobProblem('incomplete') : error;
      },
    );
  }

  private async get<T>(
    provider: Provider,
    path: string,
    maxMs: number,
    use: (response: ProviderResponse) => Promise<T>,
  ): Promise<T> {
    await this.turn();
    const signal = AbortSignal.any([this.stopping, AbortSignal.timeout(maxMs)]);
    return this.reader.get(provider, path, signal, async (response) => {
      const problem = problemOf(response.status);
      if (problem !== null) throw new JobProblem(problem);
      return use(response);
    });
  }
}

function problemOf(status: number): string | null {
  if (status === 200) return null;
  if (status === 401 || status === 403) return 'unauthorized';
  if (status === 404) return 'not_found';
  if (status === 429) return 'rate_limited';
  return status >= 500 ? 'provider_error' : 'unexpected_status';
}

async function wholeBody({ body }: ProviderResponse): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_JOB_BYTES) throw new JobProblem('too_large', true);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function isOldAzure({ basePath }: Provider, path: string): boolean {
  return /^\/openai\/(?!v1\/)/.test(`${basePath}${path}`);
}
