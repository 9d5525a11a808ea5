import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ServiceError } from '../errors/service-error.js';
import { SecretBox, SecretBoxError } from '../platform/secret-box.js';

/**
 * Encrypts and decrypts what is secret of the rows of one table, each value bound to its row. `postern providers reseal`
 * finds each provider that extends this class, and re-encrypts its rows.
 */
@Injectable()
export abstract class RowSecrets<T> {
  /** The type of the rows in the audit log as well. */
  abstract readonly table: string;
  /** SQL of the name that a row has in the audit log. */
  abstract readonly name: string;
  /** SQL of the name that a row has among the rows of all tables. */
  abstract readonly label: string;
  readonly column: string = 'sealed';
  /** What follows the ID in the place that a value is bound to. Stored values open with no other. */
  protected readonly place: string = 'sealed';
  private readonly box: SecretBox | null;

  /** @param env a gateway always has a master key; a command may run without one */
  constructor(@InjectSettings() env: Settings) {
    this.box = env.masterKey ? new SecretBox(env.masterKey, env.masterKeyPrevious) : null;
  }

  /** @throws ServiceError invalid without a master key */
  seal(id: string, value: T): Buffer {
    return this.needed.seal(Buffer.from(this.encode(value)), this.contextOf(id));
  }

  /** @throws SecretBoxError; ServiceError invalid without a master key */
  open(id: string, sealed: Buffer): T {
    return this.decode(this.needed.open(sealed, this.contextOf(id)).toString());
  }

  /** The same; undefined if it cannot be decrypted. @throws ServiceError invalid without a master key */
  tryOpen(id: string, sealed: Buffer): T | undefined {
    try {
      return this.open(id, sealed);
    } catch (error) {
      if (error instanceof SecretBoxError) return undefined;
      throw error;
    }
  }

  /** The same, for a request. @throws ServiceError conflict if it cannot be decrypted; invalid without a master key */
  mustOpen(id: string, sealed: Buffer, field = 'secret_state'): T {
    try {
      return this.open(id, sealed);
    } catch (error) {
      if (!(error instanceof SecretBoxError)) throw error;
      throw ServiceError.of('conflict', field, `cannot be decrypted: ${error.message}`);
    }
  }

  /** Without a master key (a command) the state cannot be determined: true. */
  isReadable(id: string, sealed: Buffer): boolean {
    return this.box === null || this.tryOpen(id, sealed) !== undefined;
  }

  isCurrent(sealed: Buffer): boolean {
    return this.needed.isCurrent(sealed);
  }

  protected encode(value: T): string {
    return JSON.stringify(value);
  }

  protected decode(text: string): T {
    return JSON.parse(text) as T;
  }

  /** Names table, row and column, so that what is copied to another row cannot be decrypted there. */
  private contextOf(id: string): string {
    return `${this.table}:${id}:${this.place}`;
  }

  private get needed(): SecretBox {
    if (this.box !== null) return this.box;
    const what = this.place === 'sealed' ? this.table : this.place;
    throw new ServiceError(
      'invalid',
      `There is no master key to encrypt ${what}s with. Set MASTER_KEY to the key of the gateway, or DATA_DIR to its directory.`,
    );
  }
}
