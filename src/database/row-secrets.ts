import type { Settings } from '../config/settings.js';
import { ServiceError } from '../errors/service-error.js';
import { SecretBox } from '../platform/secret-box.js';

/** Encrypts and decrypts what is secret of the rows of one table, each value bound to its row. */
export abstract class RowSecrets<T> {
  private readonly box: SecretBox | null;

  /**
   * @param env a gateway always has a master key; a command may run without one
   * @param table names table and column together with the row, so that what is copied to another row cannot be decrypted
   */
  protected constructor(
    env: Settings,
    private readonly table: string,
  ) {
    this.box = env.masterKey ? new SecretBox(env.masterKey, env.masterKeyPrevious) : null;
  }

  /** @throws ServiceError invalid without a master key */
  seal(id: string, value: T): Buffer {
    return this.needed.seal(Buffer.from(JSON.stringify(value)), this.contextOf(id));
  }

  /** @throws SecretBoxError; ServiceError invalid without a master key */
  open(id: string, sealed: Buffer): T {
    return JSON.parse(this.needed.open(sealed, this.contextOf(id)).toString()) as T;
  }

  isCurrent(sealed: Buffer): boolean {
    return this.needed.isCurrent(sealed);
  }

  private contextOf(id: string): string {
    return `${this.table}:${id}:sealed`;
  }

  private get needed(): SecretBox {
    if (this.box !== null) return this.box;
    throw new ServiceError(
      'invalid',
      `There is no master key to encrypt ${this.table}s with. Set MASTER_KEY to the key of the gateway, or DATA_DIR to its directory.`,
    );
  }
}
