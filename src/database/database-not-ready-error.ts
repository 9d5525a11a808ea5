import { TypeORMError } from 'typeorm';

/** A query before Postgres was connected, such as in `onModuleInit`. */
export class DatabaseNotReadyError extends TypeORMError {
  /** @internal */
  constructor() {
    super(
      'Postgres is not connected yet: the gateway connects and migrates after onModuleInit and onApplicationBootstrap, and ' +
        'again and again while Postgres is unavailable. Register work for then in a constructor: ' +
        'database.whenReady(() => …) of DatabaseService',
    );
  }
}
