import pg from 'pg';

/**
 * A pg client that always has an `error` listener, so that a broken connection never ends the process. A pool removes its
 * own listener from a connection that it hands out; until the user adds one, Node would throw an `error` event. No error
 * is lost: the current or the next query fails.
 */
export class PooledClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on('error', () => {});
  }
}
