/**
 * Tests of modules: a gateway, its Postgres and a provider in the process of a test.
 *
 * @packageDocumentation
 */
export { eventually } from './eventually.js';
export {
  type FakeEvent,
  FakeProvider,
  type FakeRequest,
  type FakeResponder,
  type FakeResponse,
} from './fake-provider.js';
export type { Override, Overrides } from './overrides.js';
export { startPostgres, type TestPostgres } from './postgres.js';
export { type RequestRow, startGateway, type TestGateway, type TestGatewayOptions } from './start-gateway.js';
export { createDatabase, type TestDatabase } from './test-database.js';
