import pg from 'pg';

/**
 * A pooled connection that breaks never ends the process. A pool takes its own listener off a connection that it hands
 * out; until whoever gets it has put one on, an `error` would have none, and Node would throw it. Nothing is lost here: the
 * query under way, or the next one, is told.
 */
export class SteadyClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on('error', () => {});
  }
}
