import { createHmac, hash, randomInt } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../../config/config.module.js';
import { required, type Settings } from '../../config/settings.js';
import {
  API_KEY_PREFIX,
  DEVICE_CODE_PREFIX,
  hasSecretFormat,
  REFRESH_TOKEN_PREFIX,
} from '../../platform/api-key.js';
import { derivedSecret, hasChecksum, randomSecret } from '../../platform/random-secret.js';

/** Without vowels, so that no code is a word, and without letters that look alike (RFC 8628 6.1). */
const ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ';
const CODE_LENGTH = 8;
const CODE = new RegExp(`^[${ALPHABET}]{${CODE_LENGTH}}$`);

/** What a client gets for a device code or a refresh token. */
export interface TokenPair {
  readonly access: string;
  readonly refresh: string;
}

/** Generates the secrets of sign-ins, and what is stored of them. */
@Injectable()
export class SignInSecrets {
  /** Of the present master key, and of the one before it. */
  private readonly keys: readonly Buffer[];

  constructor(@InjectSettings() env: Settings) {
    const masters = [required(env, 'masterKey'), env.masterKeyPrevious];
    this.keys = masters
      .filter((key) => key !== undefined)
      .map((key) => createHmac('sha256', key).update('\x02postern sign-in').digest());
  }

  newDeviceCode(): string {
    return randomSecret(DEVICE_CODE_PREFIX);
  }

  /** A code that a person types: `WDJB-MJHT`. */
  newUserCode(): string {
    const letters = Array.from({ length: CODE_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]!);
    return `${letters.slice(0, 4).join('')}-${letters.slice(4).join('')}`;
  }

  isDeviceCode(text: string): boolean {
    return hasSecretFormat(text, DEVICE_CODE_PREFIX) && hasChecksum(text);
  }

  isRefreshToken(text: string): boolean {
    return hasSecretFormat(text, REFRESH_TOKEN_PREFIX) && hasChecksum(text);
  }

  /**
   * What may be stored of a typed code, with the present master key first; empty if it is none. Keyed, because there are few
   * codes.
   */
  userCodeDigests(typed: string): Buffer[] {
    const code = typed.toUpperCase().replace(/[^A-Z]/g, '');
    return CODE.test(code) ? this.keyed('user code', code) : [];
  }

  /** What may be stored of a network, to count its requests, with the present master key first. */
  networkDigests(network: string): string[] {
    return this.keyed('network', network).map((digest) => digest.toString('base64url'));
  }

  /**
   * The tokens that follow a secret: the same each time, so that a client that lost the response gets them again, from any
   * replica, and nobody has to store them. One pair for each master key that another replica may have used, the present one
   * first.
   */
  following(secret: string): TokenPair[] {
    return this.keys.map((key) => ({
      access: derivedSecret(API_KEY_PREFIX, key, secret),
      refresh: derivedSecret(REFRESH_TOKEN_PREFIX, key, secret),
    }));
  }

  private keyed(purpose: string, text: string): Buffer[] {
    return this.keys.map((key) => createHmac('sha256', key).update(`${purpose}\0${text}`).digest());
  }
}

/** SHA-256: a plain digest suffices for 190 random bits. */
export function digestOf(secret: string): Buffer {
  return Buffer.from(hash('sha256', secret, 'hex'), 'hex');
}
