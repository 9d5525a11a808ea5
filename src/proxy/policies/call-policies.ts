import { Injectable } from '@nestjs/common';
import type { Grant } from '../../auth/caller.js';
import type { CallPolicy } from './call-policy.js';

declare module '../../auth/caller.js' {
  interface Grant {
    /** Set by CallPolicies at the first call: the policies for this key, or null. Undefined before. */
    policies?: readonly CallPolicy[] | null;
    /** Version of CallPolicies at that time. */
    policiesVersion?: number;
  }
}

/**
 * The policies of calls: those of the gateway, and those of an organisation's own modules.
 *
 * @beta
 */
@Injectable()
export class CallPolicies {
  private readonly policies: CallPolicy[] = [];
  private isInUse = false;
  private changes = 0;

  /**
   * Registers a policy. Call in a constructor.
   *
   * @throws Error once a call was served: a policy must not miss calls
   */
  register(policy: CallPolicy): void {
    if (this.isInUse) throw new Error('register call policies in a constructor, before the first call');
    this.policies.push(policy);
    this.policies.sort((a, b) => (a.order ?? 0) - (b.order ?? 0));
  }

  /** Increases with each `changed()`. */
  get version(): number {
    return this.changes;
  }

  /** The names of all rules for a key: see CallPolicy.rulesOf(). */
  rulesOf(grant: Grant): string[] {
    return this.policies.flatMap((policy) => policy.rulesOf?.(grant) ?? []);
  }

  /** Calls `appliesTo` and `rulesOf` again for every key. To be called when anything besides the grant on which it depends has changed. */
  changed(): void {
    this.changes++;
  }

  /** The policies for a key. @returns null if there is none */
  of(grant: Grant): readonly CallPolicy[] | null {
    return grant.policiesVersion === this.changes ? grant.policies! : this.resolve(grant);
  }

  private resolve(grant: Grant): readonly CallPolicy[] | null {
    this.isInUse = true;
    grant.policiesVersion = this.changes;
    const policies = this.policies.filter((policy) => policy.appliesTo?.(grant) ?? true);
    return (grant.policies = policies.length === 0 ? null : policies);
  }
}
