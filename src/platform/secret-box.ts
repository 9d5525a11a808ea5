import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomFillSync,
} from 'node:crypto';

/**
 * Seals what is secret at rest. A sealed value contains the ID of its master key and opens only in the place it was
 * sealed for, so that nobody who can write to the database makes one row's secret serve as another's.
 *
 *   version (1) | key id (4) | nonce (12) | tag (16) | AES-256-GCM ciphertext
 */
const VERSION = 1;
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const NONCE_AT = 1 + KEY_ID_BYTES;
const TAG_AT = NONCE_AT + NONCE_BYTES;
const TEXT_AT = TAG_AT + TAG_BYTES;
/** Nonces are drawn for so many values at once: a draw from the system's CSPRNG for each takes 2 µs in a loop. */
const DRAWN_AT_ONCE = 256;

/** `unknown_key`: sealed with a master key that is not here. `damaged`: changed, cut, or moved from another place. */
export type SecretBoxErrorKind = 'unknown_key' | 'damaged';

/** What was sealed cannot be opened. Holds neither the value nor the reason of the cipher. */
export class SecretBoxError extends Error {
  override readonly name = 'SecretBoxError';

  constructor(readonly problem: SecretBoxErrorKind) {
    super(
      problem === 'unknown_key'
        ? 'it was encrypted with another master key; set MASTER_KEY or MASTER_KEY_PREVIOUS to that key'
        : 'it is damaged or belongs to another row; store it again',
    );
  }
}

/** As a KeyObject: with the bytes, Node 24 takes 20 µs more for each HMAC and each cipher. */
interface MasterKey {
  id: Buffer;
  key: KeyObject;
  /** The first bytes of every value that is sealed with it. */
  header: Buffer;
}

/** A box that seals with one master key and opens what that one or the one before it sealed. */
export class SecretBox {
  private readonly current: MasterKey;
  private readonly known: readonly MasterKey[];

  /** @param masterKey 32 bytes @param previous the one used before, or undefined */
  constructor(masterKey: Buffer, previous?: Buffer) {
    this.current = withId(masterKey);
    this.known = previous === undefined ? [this.current] : [this.current, withId(previous)];
  }

  /** @param context names the one place where the value may be opened again, such as `provider:<id>:secret` */
  seal(plaintext: Buffer, context: string): Buffer {
    const { header } = this.current;
    const nonce = newNonce();
    const cipher = createCipheriv('aes-256-gcm', keyFor(this.current, context), nonce);
    cipher.setAAD(associated(header, context));
    const text = [cipher.update(plaintext), cipher.final()];
    return Buffer.concat([header, nonce, cipher.getAuthTag(), ...text]);
  }

  /** @throws SecretBoxError and nothing else, whatever the bytes */
  open(sealed: Buffer, context: string): Buffer {
    if (sealed.length < TEXT_AT || sealed[0] !== VERSION) throw new SecretBoxError('damaged');
    const header = sealed.subarray(0, NONCE_AT);
    const master = this.known.find(({ id }) => id.equals(header.subarray(1)));
    if (master === undefined) throw new SecretBoxError('unknown_key');
    const nonce = sealed.subarray(NONCE_AT, TAG_AT);
    // The tag's length is pinned: Node would else take one of 4 bytes, which can be guessed.
    const cipher = createDecipheriv('aes-256-gcm', keyFor(master, context), nonce, {
      authTagLength: TAG_BYTES,
    });
    cipher.setAAD(associated(header, context));
    cipher.setAuthTag(sealed.subarray(TAG_AT, TEXT_AT));
    try {
      return Buffer.concat([cipher.update(sealed.subarray(TEXT_AT)), cipher.final()]);
    } catch {
      throw new SecretBoxError('damaged');
    }
  }

  /** False if the value should be re-encrypted, so that the previous master key can be removed. */
  isCurrent(sealed: Buffer): boolean {
    return sealed[0] === VERSION && this.current.id.equals(sealed.subarray(1, NONCE_AT));
  }
}

const drawn = Buffer.allocUnsafeSlow(DRAWN_AT_ONCE * NONCE_BYTES);
let used = drawn.length;

/** @returns random bytes that nobody else gets, which the next call may overwrite */
function newNonce(): Buffer {
  if (used === drawn.length) {
    randomFillSync(drawn);
    used = 0;
  }
  used += NONCE_BYTES;
  return drawn.subarray(used - NONCE_BYTES, used);
}

/** The id distinguishes keys and reveals nothing about them. */
function withId(bytes: Buffer): MasterKey {
  const key = createSecretKey(bytes);
  const id = createHmac('sha256', key).update('postern master key id').digest().subarray(0, KEY_ID_BYTES);
  return { id, key, header: Buffer.concat([Buffer.of(VERSION), id]) };
}

/**
 * Each place has a key of its own, derived from the master key (NIST SP 800-108, one block in counter mode): random
 * nonces are safe for 2^32 values under one key (SP 800-38D 8.3), which stored responses could reach under a shared one.
 */
function keyFor({ key }: MasterKey, context: string): KeyObject {
  return createSecretKey(createHmac('sha256', key).update(`\x01postern secret box\0${context}`).digest());
}

function associated(header: Buffer, context: string): Buffer {
  return Buffer.concat([header, Buffer.from(context)]);
}
