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

/** An error response, or no response at all. `message` says what happened and what to do. */
export class ApiError extends PosternApiError {
  /** What is wrong with one field, or undefined. */
  of(field: string): string | undefined {
    return this.details.find((detail) => detail.field === field || detail.field.startsWith(`${field}.`))
      ?.message;
  }
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

/** The gateway requires both for a change that a cookie authorizes (CSRF), also for one without a body. */
const OF_CHANGES = { 'x-postern-console': '1', 'content-type': 'application/json' };

function sender<M extends Method>(method: M) {
  const client = createClient({ url: window.location.origin });
  return async <P extends PathsWith<M>>(
    url: P,
    { path, query, body, shown, headers, signal }: Options<paths[P][M]> = {},
  ): Promise<ResponseOf<P, M>> => {
    try {
      return await client.request(method.toUpperCase(), url, {
        params: { path: path as Record<string, string>, query: query as object },
        body: body as object,
        headers: { ...(method !== 'get' && OF_CHANGES), ...(shown && ifMatch(shown)), ...headers },
        signal,
      });
    } catch (error) {
      if (!(error instanceof PosternApiError)) throw error;
      if (error.status === 401 && !url.startsWith('/self/') && url !== '/admin/v1/session') onSignedOut();
      throw new ApiError(withRemedy(error), { ...error, cause: error });
    }
  };
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
  if (status === 409 || status === 412)
    return `${sentence(text)} Load the page again to see the present state.`;
  if ((status === 429 || status === 503) && retryAfter !== null)
    return `${sentence(text)} Try again in ${retryAfter} s.`;
  return text;
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
