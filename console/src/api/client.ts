import {
  createClient,
  ifMatch,
  type paths,
  PosternApiError,
  type ResponseOf,
} from '../../../src/client/index';

export type { operations, ResponseOf } from '../../../src/client/index';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
type PathsWith<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: object }> ? P : never;
}[keyof paths];
type BodyOf<O> = O extends { requestBody?: { content: { 'application/json': infer Body } } }
  ? Body
  : undefined;
type QueryOf<O> = O extends { parameters: { query?: infer Query } } ? Query : undefined;
type PathOf<O> = O extends { parameters: { path: infer Path } } ? Path : undefined;

interface Options<O> {
  path?: PathOf<O>;
  query?: QueryOf<O>;
  body?: BodyOf<O>;
  /** The object as it was read: the change is rejected if somebody else changed it meanwhile. */
  shown?: Parameters<typeof ifMatch>[0];
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}

type Detail = PosternApiError['details'][number];

/** An error response, or no response at all. `message` says what happened and what to do. */
export class ApiError extends PosternApiError {
  /** The fields of a form that show a detail. */
  private readonly shownAt = new Map<Detail, string>();

  /** What is wrong with one field, for the place beside it; undefined if nothing, or if another field shows it. */
  of(field: string): string | undefined {
    const found = this.details.find(
      (detail) =>
        (detail.field === field || detail.field.startsWith(`${field}.`)) &&
        (this.shownAt.get(detail) ?? field) === field,
    );
    if (found === undefined) return undefined;
    for (const detail of this.details)
      if (detail.field === found.field) this.shownAt.set(detail, field);
    return inWords(found.message);
  }

  /** What no field of a form shows, as sentences; undefined if fields show everything. Ask after the fields have. */
  get elsewhere(): string | undefined {
    if (this.details.length === 0) return this.message;
    const others = this.details.filter((detail) => !this.shownAt.has(detail));
    if (others.length === 0) return undefined;
    return others
      .map(({ field, message }) => sentence(inWords(NAMED.has(field) ? message : `${field} ${message}`)))
      .join(' ');
  }

  /** Somebody else changed the object after it was shown. */
  get isChangedMeanwhile(): boolean {
    return this.status === 412 || this.details.some(({ field }) => field === 'version');
  }
}

/** Whether what was asked for does not exist, such as the team of a filter. */
export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** Members that no form has, whose messages say what they are about. */
const NAMED: ReadonlySet<string> = new Set(['id', 'name', 'request', 'version']);

/** The API says how JSON has an amount; whoever types one types text anyway. */
function inWords(message: string): string {
  return message.charAt(0).toUpperCase() + message.slice(1).replace(' as text,', ',');
}

/** Requests to the gateway that served this page. @throws ApiError, and what the signal was aborted with */
export const api = {
  get: sender('get'),
  post: sender('post'),
  put: sender('put'),
  patch: sender('patch'),
  delete: sender('delete'),
};

/** Called when the gateway says that nobody is signed in any more. */
let onSignedOut: () => void = () => undefined;
export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener;
}

/** The gateway gives up a query after 5 seconds. Some changes, such as repricing, take long. */
const READ_TIMEOUT_S = 30;
const CHANGE_TIMEOUT_S = 300;

/** The gateway requires both for a change that a cookie authorizes (CSRF), also for one without a body. */
const OF_CHANGES = { 'x-postern-console': '1', 'content-type': 'application/json' };

function sender<M extends Method>(method: M) {
  const client = createClient({ url: window.location.origin });
  return async <P extends PathsWith<M>>(
    url: P,
    { path, query, body, shown, headers, signal }: Options<paths[P][M]> = {},
  ): Promise<ResponseOf<P, M>> => {
    const seconds = method === 'get' ? READ_TIMEOUT_S : CHANGE_TIMEOUT_S;
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), seconds * 1_000);
    try {
      return await client.request(method.toUpperCase(), url, {
        params: { path: path as Record<string, string>, query: query as object },
        body: body as object,
        headers: { ...(method !== 'get' && OF_CHANGES), ...(shown && ifMatch(shown)), ...headers },
        signal: AbortSignal.any([timeout.signal, ...(signal ? [signal] : [])]),
      });
    } catch (error) {
      if (timeout.signal.aborted && signal?.aborted !== true)
        throw timedOut(seconds, method !== 'get', error);
      if (!(error instanceof PosternApiError)) throw error;
      if (error.status === 401 && !url.startsWith('/self/') && url !== '/admin/v1/session') onSignedOut();
      throw new ApiError(withRemedy(error), { ...error, cause: error });
    } finally {
      clearTimeout(timer);
    }
  };
}

function timedOut(seconds: number, isChange: boolean, cause: unknown): ApiError {
  const text = `The gateway has not responded for ${seconds} seconds. It may be overloaded, or its database.`;
  return new ApiError(isChange ? `${text} Look whether the change was made before you repeat it.` : text, {
    status: 0,
    code: 'timeout',
    cause,
  });
}

function withRemedy({ code, status, message, retryAfter }: PosternApiError): string {
  if (code === 'unreachable')
    return 'The gateway did not respond. Check that it runs and that you are connected.';
  // A proxy in between may respond with HTML, or redirect to its own sign-in.
  const text =
    code === 'unexpected_response'
      ? `The gateway responded with status ${status} and no explanation.`
      : message;
  if (code === 'unexpected_response' && status < 400) return `${text} Load the page again.`;
  if ((status === 429 || status === 503) && retryAfter !== null)
    return `${sentence(text)} Try again in ${retryAfter} s.`;
  return text;
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
