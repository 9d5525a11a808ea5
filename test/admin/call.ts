import type { KeyView } from '../../src/keys/keys.schema.js';
import type { AuditView } from '../../src/audit/audit.schema.js';
import type { RequestView } from '../../src/requests/request-view.js';
import { ADMIN_TOKEN, type TestGateway } from '../support/gateway.js';

/** What an answer may hold; which of it does is what the tests check. */
export interface AdminBody extends Partial<KeyView> {
  key: string;
  id: string;
  data: (Partial<KeyView> & Partial<RequestView> & Partial<AuditView>)[];
  next_cursor: string | null;
  error: { message: string; code: string; details: { field: string; message: string }[] };
}

export interface AdminAnswer {
  status: number;
  headers: Headers;
  body: AdminBody;
}

/** Calls the admin API with its token; unlike TestGateway.admin it also returns error responses. */
export async function call(
  { url }: TestGateway,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<AdminAnswer> {
  const response = await fetch(`${url}/admin/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${ADMIN_TOKEN}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as AdminBody };
}

/** The fields that a 400 names. */
export function fieldsOf({ body }: AdminAnswer): string[] {
  return body.error.details.map(({ field }) => field);
}
