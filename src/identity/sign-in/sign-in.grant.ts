import { OauthError, type Parameters } from '../oauth/parameters.js';
import type { OauthGrant, TokenResponse } from '../oauth/oauth-grants.js';

/** A grant of sign-ins, which counts what its requests come to. */
export abstract class SignInGrant implements OauthGrant {
  abstract readonly type: string;
  abstract readonly name: 'device' | 'refresh';
  readonly counts = new Map<string, number>();

  /** @param isOn SIGN_IN=on */
  constructor(readonly isOn: boolean) {}

  /** @throws OauthError */
  protected abstract issue(parameters: Parameters, address: string | null): Promise<TokenResponse>;

  async token(parameters: Parameters, address: string | null): Promise<TokenResponse> {
    try {
      const response = await this.issue(parameters, address);
      this.count('issued');
      return response;
    } catch (error) {
      this.count(resultOf(error));
      throw error;
    }
  }

  private count(result: string): void {
    this.counts.set(result, (this.counts.get(result) ?? 0) + 1);
  }
}

function resultOf(error: unknown): string {
  if (!(error instanceof OauthError)) return 'unavailable';
  if (error.code === 'authorization_pending' || error.code === 'slow_down') return 'pending';
  if (error.status === 429) return 'busy';
  return error.status === 503 ? 'unavailable' : 'rejected';
}
