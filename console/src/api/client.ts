import type { paths } from './schema';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
type PathsWith<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: object }> ? P : never;
}[keyof paths];
type Operation<P extends keyof paths, M extends Method> = paths[P][M];
type Json<R> = R extends { content: { 'application/json': infer Body } } ? Body : undefined;
/** The JSON body of the successful response of an operation. */
export type ResponseOf<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { responses: infer R }
    ? R extends { 200: infer Ok }
      ? Json<Ok>
      : R extends { 201: infer Created }
        ? Json<Created>
        : undefined
    : never;
type BodyOf<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { requestBody?: { content: { 'application/json': infer Body } } }
    ? Body
    : undefined;
type QueryOf<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { parameters: { query?: infer Query } } ? Query : undefined;
type PathOf<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { parameters: { path: infer Path } } ? Path : undefined;

interface Versioned {
  id: string | null;
  version: number | null;
}

/** As the gateway makes it from an object. */
function entityTagOf({ id, version }: Versioned): string {
  return `"${id ?? 'environment'}.${version ?? 0}"`;
}

interface Options<P extends keyof paths, M extends Method> {
  path?: PathOf<P, M>;
  query?: QueryOf<P, M>;
  body?: BodyOf<P, M>;
  /** The object as it was read: the change is rejected if somebody else changed it meanwhile. */
  shown?: Versioned;
  signal?: AbortSignal;
}

/** An error response, or no response at all. `message` says what happened and what to do. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  constructor(
    /** HTTP status; 0 if there was no response. */
    readonly status: number,
    readonly code: string,
    message: string,
    /** The fields that are wrong, by name. */
    readonly details: readonly { field: string; message: string }[] = [],
  ) {
    super(message);
  }

  /** What is wrong with one field, or undefined. */
  of(field: string): string | undefined {
    return this.details.find((detail) => detail.field === field || detail.field.startsWith(`${field}.`))
      ?.message;
  }
}

export const api = {
  get: <P extends PathsWith<'get'>>(path: P, options: Options<P, 'get'> = {}) =>
    send<ResponseOf<P, 'get'>>('GET', path, options as Plain),
  post: <P extends PathsWith<'post'>>(path: P, options: Options<P, 'post'> = {}) =>
    send<ResponseOf<P, 'post'>>('POST', path, options as Plain),
  put: <P extends PathsWith<'put'>>(path: P, options: Options<P, 'put'> = {}) =>
    send<ResponseOf<P, 'put'>>('PUT', path, options as Plain),
  patch: <P extends PathsWith<'patch'>>(path: P, options: Options<P, 'patch'> = {}) =>
    send<ResponseOf<P, 'patch'>>('PATCH', path, options as Plain),
  delete: <P extends PathsWith<'delete'>>(path: P, options: Options<P, 'delete'> = {}) =>
    send<ResponseOf<P, 'delete'>>('DELETE', path, options as Plain),
};

interface Plain {
  path?: Record<string, string>;
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  shown?: Versioned;
  signal?: AbortSignal;
  headers?: Readonly<Record<string, string>>;
}

/** Called when the gateway says that nobody is signed in any more. */
let onSignedOut: () => void = () => undefined;
export function whenSignedOut(listener: () => void): void {
  onSignedOut = listener;
}

/**
 * Sends a request to the gateway that served this page.
 *
 * @throws ApiError for a status of 400 or above, and for no response
 */
export async function send<T>(method: string, path: string, options: Plain = {}): Promise<T> {
  const { body, shown, signal } = options;
  const headers: Record<string, string> = { accept: 'application/json', ...options.headers };
  if (method !== 'GET') {
    // The gateway requires both for a change that a cookie authorizes (CSRF).
    headers['x-postern-console'] = '1';
    headers['content-type'] = 'application/json';
  }
  if (shown !== undefined) headers['if-match'] = entityTagOf(shown);
  let response: Response;
  let text: string;
  try {
    response = await fetch(urlOf(path, options), {
      method,
      headers,
      signal,
      credentials: 'same-origin',
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    text = await response.text();
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(
      0,
      'unreachable',
      'The gateway did not respond. Check that it runs and that you are connected.',
    );
  }
  if (response.ok) return (text === '' ? undefined : JSON.parse(text)) as T;
  const error = errorOf(response, text);
  if (error.status === 401 && !path.startsWith('/self/') && path !== '/admin/v1/session') onSignedOut();
  throw error;
}

/** The address of an endpoint with its parameters, for requests and links. */
export function urlOf(path: string, { path: names, query }: Pick<Plain, 'path' | 'query'> = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names?.[name] ?? ''));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {}))
    if (value !== undefined) search.set(name, String(value));
  const text = search.toString();
  return text === '' ? filled : `${filled}?${text}`;
}

function errorOf(response: Response, text: string): ApiError {
  const { error } = parsed(text);
  const code = error?.code ?? 'unexpected_response';
  const message =
    error?.message ?? `The gateway responded with status ${response.status} and no explanation.`;
  return new ApiError(
    response.status,
    code,
    withRemedy(response.status, message, response.headers),
    error?.details,
  );
}

interface ErrorBody {
  error?: { message?: string; code?: string; details?: { field: string; message: string }[] };
}

function parsed(text: string): ErrorBody {
  try {
    return (JSON.parse(text) ?? {}) as ErrorBody;
  } catch {
    // A proxy in between may respond with HTML; its status says enough.
    return {};
  }
}

function withRemedy(status: number, message: string, headers: Headers): string {
  if (status === 409 || status === 412)
    return `${sentence(message)} Load the page again to see the present state.`;
  const seconds = headers.get('retry-after');
  if ((status === 429 || status === 503) && seconds !== null)
    return `${sentence(message)} Try again in ${seconds} s.`;
  return message;
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
