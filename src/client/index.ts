/**
 * The admin API for programs and pages, in Node and browsers.
 *
 * @packageDocumentation
 */
export { type ApiErrorDetail, PosternApiError } from './api-error.js';
export {
  type ClientOptions,
  createClient,
  ifMatch,
  type PosternClient,
  type ResponseOf,
  type UntypedInit,
} from './client.js';
export type { components, operations, paths } from './schema.js';
