import {
  createClient,
  PosternApiError as ApiError,
  type PosternClient,
  type UntypedInit,
} from '../client/index.js';
import type { Page } from '../database/page.js';
import { describeError } from '../errors/describe-error.js';
import { isTimeZone } from '../platform/time-zone.js';
import type { SystemView } from '../system/system.schema.js';
import { CliError } from './cli-error.js';
import { showTimesIn } from './times.js';

export { ApiError };

/** `GET /admin/v1/session`, as far as commands need it. */
interface SessionState {
  time_zone?: string;
}

/** `GET /health/ready` */
export type Readiness = Pick<SystemView, 'status' | 'reasons'>;

/** Where the admin API is. */
export interface Target {
  /** Base URL, without `/admin/v1`. */
  url: string;
  token: string;
  close(): Promise<void>;
}

export type Query = Readonly<Record<string, string | number | undefined>>;

/** The gateway cannot be reached, or something else responds at its URL. */
export class UnreachableError extends CliError {}

interface Connection extends Target {
  client: PosternClient;
}

/** The client of the admin API, with paths below `/admin/v1`. It connects with the first request. */
export class Api {
  private connection: Promise<Connection> | null = null;
  private knownZone: Promise<string> | null = null;

  /** @param givenZone the value of `--tz` */
  constructor(
    private readonly connect: () => Promise<Target>,
    private readonly givenZone?: string,
  ) {}

  /** The time zone in which days begin and times are printed: that of `--tz`, else `REPORT_TIMEZONE` of the gateway. */
  zone(): Promise<string> {
    return (this.knownZone ??= this.findZone());
  }

  get<T>(path: string, query: Query = {}): Promise<T> {
    return this.json('GET', path, { params: { query } });
  }

  post<T>(path: string, body: object = {}): Promise<T> {
    return this.json('POST', path, { body });
  }

  put<T>(path: string, body: object): Promise<T> {
    return this.json('PUT', path, { body });
  }

  patch<T>(path: string, body: object): Promise<T> {
    return this.json('PATCH', path, { body });
  }

  /** @returns the body of the response, undefined for none */
  delete<T>(path: string, query: Query = {}): Promise<T> {
    return this.json('DELETE', path, { params: { query } });
  }

  /** What `/health/ready` says, also while the admin API cannot read the database; null if it is not there. */
  async readiness(): Promise<Readiness | null> {
    const { url } = await this.connected();
    const response = await fetch(`${url}/health/ready`, { redirect: 'manual' });
    const isReadiness = [200, 503].includes(response.status) && isJson(response);
    return isReadiness ? ((await response.json()) as Readiness) : null;
  }

  /** A response whose body the caller reads. */
  stream(path: string, query: Query): Promise<Response> {
    return this.send(({ client }) => client.response('GET', BASE + path, { params: { query } }));
  }

  /** The pages of a list: only the first one, or with `all` every page, as large as they can be. */
  async *pages<P extends Page<unknown>>(path: string, query: Query, all: boolean): AsyncGenerator<P> {
    const { client } = await this.connected();
    const limit = all ? undefined : (query.limit ?? DEFAULT_LIMIT);
    // Which list it is, the caller knows.
    const params: object = { query: { ...query, limit } };
    const pages = client.pages((BASE + path) as '/admin/v1/keys', { params });
    do {
      const next = await this.send(() => pages.next());
      if (next.done) return;
      yield next.value as unknown as P;
    } while (all);
  }

  async close(): Promise<void> {
    await (await this.connection?.catch(() => null))?.close();
  }

  private async findZone(): Promise<string> {
    let zone = this.givenZone;
    if (zone === undefined) {
      const state = await this.request(({ client }) => client.request<SessionState>('GET', `${BASE}session`));
      // Gateways of an earlier version do not report it.
      zone = state.time_zone ?? 'UTC';
    }
    if (!isTimeZone(zone))
      throw new CliError(
        this.givenZone === undefined
          ? `REPORT_TIMEZONE of the gateway, ${zone}, is unknown here: give another with --tz`
          : '--tz must be an IANA time zone such as Europe/Berlin',
      );
    showTimesIn(zone);
    return zone;
  }

  private json<T>(method: string, path: string, init: UntypedInit): Promise<T> {
    return this.send(({ client }) => client.request<T>(method, BASE + path, init));
  }

  /** What is printed afterwards has times. */
  private async send<T>(request: (connection: Connection) => Promise<T>): Promise<T> {
    const [result] = await Promise.all([this.request(request), this.zone()]);
    return result;
  }

  private async request<T>(request: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.connected();
    try {
      return await request(connection);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 'unexpected_response') throw new UnreachableError(error.message, { cause: error });
      if (error.code === 'unreachable')
        throw new UnreachableError(
          `the gateway at ${connection.url} cannot be reached: ${whyUnreachable(error.cause)}`,
          { cause: error },
        );
      throw error;
    }
  }

  private connected(): Promise<Connection> {
    return (this.connection ??= this.connect().then((target) => ({
      ...target,
      client: createClient(target),
    })));
  }
}

function isJson({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('application/json') ?? false;
}

const BASE = '/admin/v1/';

/** What the API takes for a list without a `limit`. The client takes more. */
const DEFAULT_LIMIT = 50;

/** In one line, with the remedy. @param error of fetch */
export function whyUnreachable(error: unknown): string {
  const { cause = error } = error as { cause?: unknown };
  if ((cause as { code?: unknown }).code === 'ERR_SSL_WRONG_VERSION_NUMBER')
    return 'it does not speak TLS; begin its URL with http:// if it is on this machine';
  return `${describeError(cause)}; check its URL and that it runs`;
}

/** A path with each part encoded. */
export function path(...parts: string[]): string {
  return parts.map(encodeURIComponent).join('/');
}
