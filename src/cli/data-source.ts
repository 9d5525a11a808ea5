import { DataSource } from 'typeorm';
import { AuditLog } from '../audit/audit-log.entity.js';
import { loadEnv } from '../config/env.js';
import { dataSourceOptions } from '../database/data-source-options.js';
import { GatewayKeySecret } from '../keys/gateway-key-secret.entity.js';
import { GatewayKey } from '../keys/gateway-key.entity.js';
import { Team } from '../teams/team.entity.js';
import { StoredProvider } from '../providers/provider.entity.js';
import { RequestLog } from '../request-log/request-log.entity.js';
import { openDatabase } from './open-database.js';

/**
 * What `npm run migration:generate|run|revert` gives to TypeORM's own command line: every entity and migration, on the
 * database that the gateway uses. It lives here because the database room does not know the rooms above it.
 */
const database = await openDatabase(loadEnv(), (line) => console.error(line));

const dataSource = new DataSource({
  ...dataSourceOptions(database.url, { applicationName: 'postern-migration', poolSize: 2 }),
  entities: [Team, GatewayKey, GatewayKeySecret, StoredProvider, AuditLog, RequestLog],
});

// TypeORM's command line knows nothing of a server that was started for it: it is stopped with the last connection.
const destroy = dataSource.destroy.bind(dataSource);
dataSource.destroy = async () => {
  await destroy();
  await database.close();
};

export default dataSource;
