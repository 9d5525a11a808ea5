import type { Page } from '../database/page.js';
import type { Api, Query } from './api.js';
import type { PageOptions } from './call-options.js';

/** Reads a page of a list, or with `--all` every page as one. */
export async function listPages<P extends Page<unknown>>(
  api: Api,
  path: string,
  query: Query,
  { limit, cursor, all = false }: PageOptions,
): Promise<P> {
  let whole: P | undefined;
  for await (const page of api.pages<P>(path, { ...query, limit, cursor }, all)) {
    whole = whole === undefined ? page : { ...whole, data: [...whole.data, ...page.data], next_cursor: null };
  }
  return { ...whole!, ...(all && { next_cursor: null }) };
}
