import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import {
  DataSource,
  type DataSourceOptions,
  type EntityMetadata,
  type EntitySubscriberInterface,
  type EntityTarget,
  type ObjectLiteral,
  type QueryRunner,
  type ReplicationMode
} from 'typeorm';
import { DatabaseNotReadyError } from './database-not-ready-error.js';
import { SETTINGS } from '../config/config.module.js';
import { directUrl, type Settings } from '../config/settings.js';
import { CLOSE_TIMEOUT, withTimeout } from '../platform/patience.js';
import { dataSourceOptions } from './data-source-options.js';
import { ChangeFeed } from './change-feed.js';
import { DatabaseService } from './database.service.js';
import { KnownEnds } from './known-ends/known-ends.js';
import { LOOKUP_TIMEOUT, LookupPool } from './lookup-pool.js';
import { ReplicaJobs } from './replica-jobs.service.js';

/** Of the admin API and of background work. */
const POOL = { applicationName: 'postern', poolSize: 10, queryTimeout: LOOKUP_TIMEOUT };

/**
 * Changes of keys and limits are counted last in their transaction, because the counters are locked. In a statement of its own:
 * COMMIT has no timeout. TypeORM calls this for the end of a nested transaction too, which is a savepoint.
 */
const COUNT_BEFORE_COMMIT: EntitySubscriberInterface = {
  async beforeTransactionCommit({ queryRunner }) {
    // Protected in TypeORM. Without it, the changes would be counted all the same.
    const isNested = Number(Reflect.get(queryRunner, 'transactionDepth')) > 1;
    if (!isNested) await queryRunner.query('SET CONSTRAINTS ALL IMMEDIATE');
  }
};

/** TypeORM's, in a gateway that connects late and must end in time. */
class GatewayDataSource extends DataSource {
  constructor(options: DataSourceOptions) {
    super(options);
    this.subscribers.push(COUNT_BEFORE_COMMIT);
  }

  /** Keeps the subscribers that providers have added in their constructors, as in Nest's docs: TypeORM makes a new list. */
  override async initialize(): Promise<this> {
    const added = this.subscribers;
    try {
      return await super.initialize();
    } finally {
      if (this.subscribers !== added) this.subscribers.push(...added);
    }
  }

  /** @throws DatabaseNotReadyError, where TypeORM would find no entity at all */
  override getMetadata(target: EntityTarget<ObjectLiteral>): EntityMetadata {
    if (this.entityMetadatas.length === 0) throw new DatabaseNotReadyError();
    return super.getMetadata(target);
  }

  /** @throws DatabaseNotReadyError */
  override createQueryRunner(mode?: ReplicationMode): QueryRunner {
    if (!this.isInitialized) throw new DatabaseNotReadyError();
    return super.createQueryRunner(mode);
  }

  /** With a time limit, so that a hanging query cannot block the shutdown. */
  override async destroy(): Promise<void> {
    await withTimeout(CLOSE_TIMEOUT.ms, super.destroy());
  }
}

@Global()
@Module({
  imports: [
    TypeOrmModule.forRootAsync({
      inject: [SETTINGS],
      useFactory: (env: Settings) => ({
        ...dataSourceOptions(directUrl(env), POOL),
        autoLoadEntities: true,
        // DatabaseService connects: the gateway also starts while Postgres is unavailable.
        manualInitialization: true
      }),
      dataSourceFactory: (options) => Promise.resolve(new GatewayDataSource(options as DataSourceOptions))
    })
  ],
  providers: [DatabaseService, ChangeFeed, KnownEnds, LookupPool, ReplicaJobs],
  exports: [DatabaseService, ChangeFeed, KnownEnds, LookupPool, ReplicaJobs]
})
export class DatabaseModule {}
