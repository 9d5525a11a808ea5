import createFetchClient, { type MaybeOptionalInit, type ParseAsResponse } from 'openapi-fetch';
import type {
  PathsWithMethod,
  Readable,
  RequiredKeysOf,
  ResponseObjectMap,
  SuccessResponse,
} from 'openapi-typescript-helpers';
import { errorOf, notOurs, PosternApiError } from './api-error.js';
import type { paths } from './schema.js';

/** How a client reaches the gateway. */
export interface ClientOptions {
  /** Of the gateway, without `/admin/v1`; with ADMIN_PORT, of that port. */
  url: string;
  /** An admin token. A page of the gateway's own origin needs none: its session is a cookie. */
  token?: string;
  /** Of every request. */
  headers?: Record<string, string>;
  fetch?: (request: Request) => Promise<Response>;
}

/** Of a request whose path has no types, such as that of a module of one's own. */
export interface UntypedInit {
  params?: { path?: Record<string, string>; query?: object };
  body?: object;
  headers?: Record<string, string>;
  /** `stream` for the body as it comes. */
  parseAs?: 'json' | 'text' | 'stream';
  signal?: AbortSignal | null;
}

type Method = 'get' | 'put' | 'post' | 'patch' | 'delete';
type Media = `${string}/${string}`;
type Arguments<Init> = RequiredKeysOf<Init> extends never ? [init?: Init] : [init: Init];
type Operation<Paths extends object, P extends keyof Paths, M extends Method> =
  Paths[P] extends Record<M, infer O extends Record<string | number, unknown>> ? O : never;
type Data<O extends Record<string | number, unknown>, Init> = ParseAsResponse<
  Readable<SuccessResponse<ResponseObjectMap<O>, Media>>,
  Init
>;

type Call<Paths extends object, M extends Method> = <
  P extends PathsWithMethod<Paths, M>,
  Init extends MaybeOptionalInit<Paths[P], M & keyof Paths[P]>,
>(
  path: P,
  ...init: Arguments<Init>
) => Promise<Data<Operation<Paths, P, M>, Init>>;

/** The JSON body of the successful response of an operation. */
export type ResponseOf<P extends keyof paths, M extends Method> = Data<Operation<paths, P, M>, unknown>;

interface ListPage {
  data: readonly unknown[];
  next_cursor: string | null;
}
type ListPaths<Paths extends object> = {
  [P in PathsWithMethod<Paths, 'get'>]: Data<Operation<Paths, P, 'get'>, unknown> extends ListPage
    ? P
    : never;
}[PathsWithMethod<Paths, 'get'>];
type PageOf<Paths extends object, P extends keyof Paths> = Extract<
  Data<Operation<Paths, P, 'get'>, unknown>,
  ListPage
>;

/** A method for each HTTP method, which takes a path of the API document and returns the body of the response. */
export interface PosternClient<Paths extends object = paths> {
  GET: Call<Paths, 'get'>;
  PUT: Call<Paths, 'put'>;
  POST: Call<Paths, 'post'>;
  PATCH: Call<Paths, 'patch'>;
  DELETE: Call<Paths, 'delete'>;
  /** The pages of a list, one request each. Without a `limit`, pages are as large as they can be. */
  pages<P extends ListPaths<Paths>>(
    path: P,
    init?: MaybeOptionalInit<Paths[P], 'get' & keyof Paths[P]>,
  ): AsyncGenerator<PageOf<Paths, P>, void>;
  /** The entries of all pages of a list. */
  all<P extends ListPaths<Paths>>(
    path: P,
    init?: MaybeOptionalInit<Paths[P], 'get' & keyof Paths[P]>,
  ): AsyncGenerator<PageOf<Paths, P>['data'][number], void>;
  /** The body of the response from an endpoint that has no types. */
  request<T>(method: string, path: string, init?: UntypedInit): Promise<T>;
  /** The response itself, its body not read yet: of an export, or for a header. */
  response(method: string, path: string, init?: UntypedInit): Promise<Response>;
}

/** The largest page of a list. */
const MAX_PAGE = 500;

interface Answer {
  data?: unknown;
  response: Response;
}
type Send = (method: string, path: string, init: object) => Promise<Answer>;

/**
 * A client of the admin API. Every method throws PosternApiError if the request did not succeed, and what the signal was
 * aborted with if its caller aborted it.
 *
 * @throws TypeError for a token that no request can carry, or a URL with a password
 * @typeParam Paths those of `openapi.json`; of a gateway with modules of your own, make them with openapi-typescript
 */
export function createClient<Paths extends object = paths>(options: ClientOptions): PosternClient<Paths> {
  const url = options.url.replace(/\/+$/, '');
  const { fetch, token } = options;
  // Else the errors of requests would contain what is secret.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new TypeError('token: must be an admin token, without spaces and line breaks');
  if (/^[a-z]+:\/\/[^/?#]*@/i.test(url))
    throw new TypeError(
      'url: must not contain a user and a password; send them with headers or a fetch of your own',
    );
  const untyped = createFetchClient<Record<string, Record<string, never>>>({
    baseUrl: url,
    // A redirect could take the token elsewhere.
    redirect: 'manual',
    headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...options.headers },
    ...(fetch && { fetch }),
  });
  untyped.use({
    onResponse: async ({ response }) => {
      if (!response.ok) throw await errorOf(response, url);
    },
  });
  const send = untyped.request as unknown as Send;

  const answer = async (method: string, path: string, init: UntypedInit = {}): Promise<Answer> => {
    let response: Response | undefined;
    try {
      // A body that is not JSON is told from one that broke off: the text is read first.
      const isJson = (init.parseAs ?? 'json') === 'json';
      const read = await send(method, path, isJson ? { ...init, parseAs: 'text' } : init);
      ({ response } = read);
      return isJson ? { response, data: jsonOf(read.data) } : read;
    } catch (error) {
      if (error instanceof PosternApiError || init.signal?.aborted) throw error;
      if (error instanceof SyntaxError && response) throw notOurs(url, '', response, error);
      throw new PosternApiError(`the gateway at ${url} did not respond; check its URL and that it runs`, {
        status: 0,
        code: 'unreachable',
        cause: error,
      });
    }
  };
  const request = async (method: string, path: string, init?: UntypedInit) =>
    (await answer(method, path, init)).data;

  async function* pages(path: string, init: UntypedInit = {}): AsyncGenerator<ListPage, void> {
    const query: { cursor?: string; limit?: number } = { ...init.params?.query };
    do {
      const params = { ...init.params, query: { ...query, limit: query.limit ?? MAX_PAGE } };
      const { data, response } = await answer('GET', path, { ...init, params });
      const page = data as ListPage;
      if (!Array.isArray(page?.data)) throw notOurs(url, '', response);
      yield page;
      query.cursor = page.next_cursor ?? undefined;
    } while (query.cursor !== undefined);
  }
  async function* all(path: string, init?: UntypedInit): AsyncGenerator<unknown, void> {
    for await (const { data } of pages(path, init)) yield* data;
  }
  const call = (method: string) => (path: string, init?: UntypedInit) => request(method, path, init);
  const client = {
    ...{
      GET: call('GET'),
      PUT: call('PUT'),
      POST: call('POST'),
      PATCH: call('PATCH'),
      DELETE: call('DELETE'),
    },
    ...{ pages, all, request },
    response: async (method: string, path: string, init?: UntypedInit) =>
      (await answer(method, path, { ...init, parseAs: 'stream' })).response,
  };
  return client as unknown as PosternClient<Paths>;
}

function jsonOf(text: unknown): unknown {
  return text === '' || text === undefined ? undefined : JSON.parse(text as string);
}

/** The headers of a change that is rejected with 409 if the object is no longer as it was read. */
export function ifMatch({ id, version }: { id: string | null; version: number | null }): {
  'if-match': string;
} {
  return { 'if-match': `"${id ?? 'environment'}.${version ?? 0}"` };
}
