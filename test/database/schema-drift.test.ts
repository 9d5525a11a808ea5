import { DataSource } from 'typeorm';
import { AuditLog } from '../../src/audit/audit-log.entity.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { GatewayKeySecret } from '../../src/keys/gateway-key-secret.entity.js';
import { GatewayKey } from '../../src/keys/gateway-key.entity.js';
import { Team } from '../../src/teams/team.entity.js';
import { StoredProvider } from '../../src/providers/provider.entity.js';
import { IdempotencyRecord } from '../../src/idempotency/idempotency-record.entity.js';
import { RequestLog } from '../../src/request-log/request-log.entity.js';
import { createDatabase } from '../support/database.js';

describe('the schema that the migrations make', () => {
  it('is what the entities say, so that migration:generate proposes nothing', async () => {
    const database = await createDatabase();
    const options = dataSourceOptions(database.url, { applicationName: 'postern-test', poolSize: 2 });
    const entities = [
      Team,
      GatewayKey,
      GatewayKeySecret,
      StoredProvider,
      AuditLog,
      RequestLog,
      IdempotencyRecord,
    ];
    const dataSource = await new DataSource({ ...options, entities }).initialize();
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    await dataSource.destroy();
    await database.drop();
    expect(upQueries.map(({ query }) => query)).toEqual([]);
  });
});
