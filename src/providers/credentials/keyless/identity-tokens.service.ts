import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../../../config/config.module.js';
import type { Settings } from '../../../config/settings.js';
import { TokenError } from '../token-endpoint.js';

/** An identity token, and where it may be sent. */
export interface IdentityToken {
  readonly token: string;
  /** Scheme, host and port. */
  readonly origin: string;
}

/** What the origin of a token must be. */
export interface AllowedOrigin {
  readonly pattern: RegExp;
  /** For people. */
  readonly form: string;
}

/** Anthropic and AWS accept at most 16 KiB and 20,000 characters. */
const MAX_BYTES = 16_384;
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * Reads the identity tokens of IDENTITY_TOKEN_FILES. Operators name the files and the hosts; whoever may add providers
 * chooses among the names only, so no other file of this machine can be sent, and none to another host.
 */
@Injectable()
export class IdentityTokens {
  constructor(@InjectSettings() private readonly env: Pick<Settings, 'identityTokenFiles'>) {}

  /**
   * Reads a token again each time, because whatever issues it replaces it before it expires.
   *
   * @param allowed the hosts of the token endpoint; the one of IDENTITY_TOKEN_FILES must be among them
   * @throws TokenError, without the path and the content of the file
   */
  async read(name: string, allowed: AllowedOrigin): Promise<IdentityToken> {
    const file = this.env.identityTokenFiles.find((one) => one.name === name);
    if (file === undefined) throw new TokenError(`IDENTITY_TOKEN_FILES names no identity token "${name}"`);
    if (!allowed.pattern.test(file.origin)) {
      throw new TokenError(
        `IDENTITY_TOKEN_FILES allows sending the identity token "${name}" to ${file.origin} only, but it would have to be sent to ${allowed.form}`,
      );
    }
    const token = (await readSmallFile(file.path, `the file of the identity token "${name}"`)).trim();
    if (!JWT.test(token))
      throw new TokenError(`the file of the identity token "${name}" does not contain a JWT`);
    return { token, origin: file.origin };
  }
}

/**
 * Reads a file of at most 16 KiB. Links are followed: a token that Kubernetes projects is one. Opening does not wait for a
 * writer, as it would with a pipe.
 *
 * @param what it is called in errors
 * @throws TokenError
 */
export async function readSmallFile(path: string, what: string): Promise<string> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) throw new TokenError(`${what} is not a regular file`);
    const bytes = Buffer.alloc(MAX_BYTES + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length);
      if (bytesRead === 0) break;
      length += bytesRead;
      if (length > MAX_BYTES) throw new TokenError(`${what} is larger than 16 KiB`);
    }
    return bytes.toString('latin1', 0, length);
  } catch (error) {
    if (error instanceof TokenError) throw error;
    const { code = 'error' } = error as NodeJS.ErrnoException;
    throw new TokenError(`${what} cannot be read (${code})`);
  } finally {
    await file?.close();
  }
}
