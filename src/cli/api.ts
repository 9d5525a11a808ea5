import type { Page } from '../database/page.js';
import { describeError } from '../errors/describe-error.js';
import type { ErrorDetail } from '../errors/service-error.js';
import { CliError } from './cli-error.js';

/** Where the admin API is. */
export interface Target {
  /** Base URL, without `/admin/v1`. */
  url: string;
  token: string;
  close(): Promise<void>;
}

export type Query = Readonly<Record<string, string | number | undefined>>;

/** The largest page of a list. */
const MAX_PAGE = 500;

/** The admin API rejected the request. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: readonly ErrorDetail[],
  ) {
    super(message);
  }
}

/** The gateway cannot be reached, or something else responds at its URL. */
export class UnreachableError extends CliError {}

/** A client of the admin API. It connects with the first request. */
export class Api {
  private target: Promise<Target> | null = null;

  constructor(private readonly connect: () => Promise<Target>) {}

  get<T>(path: string, query: Query = {}): Promise<T> {
    return this.json('GET', withQuery(path, query));
  }

  post<T>(path: string, body: object = {}): Promise<T> {
    return this.json('POST', path, body);
  }

  put<T>(path: string, body: object): Promise<T> {
    return this.json('PUT', path, body);
  }

  patch<T>(path: string, body: object): Promise<T> {
    return this.json('PATCH', path, body);
  }

  /** @returns the response; 204 has no body */
  delete(path: string, query: Query = {}): Promise<Response> {
    return this.request('DELETE', withQuery(path, query));
  }

  /** A response whose body the caller reads. */
  stream(path: string, query: Query): Promise<Response> {
    return this.request('GET', withQuery(path, query));
  }

  /** The pages of a list: only the first one, or with `all` every page, as large as they can be. */
  async *pages<P extends Page<unknown>>(path: string, query: Query, all: boolean): AsyncGenerator<P> {
    let cursor = query.cursor;
    do {
      const page = await this.get<P>(path, { ...query, ...(all && { limit: MAX_PAGE }), cursor });
      if (!Array.isArray(page.data)) throw new UnreachableError(await this.notOurs());
      yield page;
      cursor = page.next_cursor ?? undefined;
    } while (all && cursor !== undefined);
  }

  async close(): Promise<void> {
    await (await this.target?.catch(() => null))?.close();
  }

  private async json<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await this.request(method, path, body);
    try {
      return (await response.json()) as T;
    } catch (error) {
      throw new UnreachableError(await this.notOurs(), { cause: error });
    }
  }

  private async notOurs(): Promise<string> {
    return `${(await this.target)!.url} does not respond like the admin API of a gateway; check the URL`;
  }

  private async request(method: string, path: string, body?: object): Promise<Response> {
    const { url, token } = await (this.target ??= this.connect());
    let response: Response;
    try {
      response = await fetch(`${url}/admin/v1/${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        // A redirect could take the token elsewhere.
        redirect: 'manual',
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    } catch (error) {
      const { cause = error } = error as { cause?: unknown };
      throw new UnreachableError(`the gateway at ${url} cannot be reached: ${whyUnreachable(cause)}`, {
        cause: error,
      });
    }
    if (!response.ok) throw await errorOf(response, url);
    return response;
  }
}

/** In one line, with the remedy. */
function whyUnreachable(cause: unknown): string {
  if ((cause as { code?: unknown }).code === 'ERR_SSL_WRONG_VERSION_NUMBER')
    return 'it does not speak TLS; begin its URL with http:// if it is on this machine';
  return `${describeError(cause)}; check its URL and that it runs`;
}

/** A path with each part encoded. */
export function path(...parts: string[]): string {
  return parts.map(encodeURIComponent).join('/');
}

function withQuery(path: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) parameters.set(name, String(value));
  return parameters.size === 0 ? path : `${path}?${parameters.toString()}`;
}

interface ErrorBody {
  error?: { message?: unknown; code?: unknown; details?: ErrorDetail[] };
}

async function errorOf(response: Response, url: string): Promise<Error> {
  const text = await response.text();
  let body: ErrorBody | null = null;
  try {
    body = JSON.parse(text) as ErrorBody | null;
  } catch {
    // Reported below.
  }
  const { message, code, details } = body?.error ?? {};
  // Other APIs have errors with a message and a code too.
  if (typeof message === 'string' && typeof code === 'string' && Array.isArray(details))
    return new ApiError(response.status, code, message, details);
  const location = response.headers.get('location');
  const what = location === null ? '' : `, redirect to ${location}`;
  return new UnreachableError(
    `${url} does not respond like the admin API of a gateway (status ${response.status}${what}); check the URL`,
  );
}
