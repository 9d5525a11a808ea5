import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { Grant } from '../../auth/caller.js';
import { madeAtStart } from '../../platform/made-at-start.js';
import { type CallPolicy, PolicyClass } from './call-policy.js';

declare module '../../auth/caller.js' {
  interface Grant {
    /** Set by CallPolicies at the first call: the policies for this key, or null. Undefined before. */
    policies?: readonly CallPolicy[] | null;
    /** Version of CallPolicies at that time. */
    policiesVersion?: number;
  }
}

/** The policies of calls: those of the gateway, and those of an organisation's own modules, each a `@CallPolicy()`. */
@Injectable()
export class CallPolicies implements OnModuleInit {
  private policies: readonly CallPolicy[] = [];
  private changes = 0;

  /** @internal */
  constructor(private readonly discovery: DiscoveryService) {}

  /** @throws Error for a policy that Nest makes later, or never */
  onModuleInit(): void {
    const found = new Set<CallPolicy>();
    for (const provider of this.discovery.getProviders()) {
      if (this.discovery.getMetadataByDecorator(PolicyClass, provider) !== undefined)
        found.add(madeAtStart(provider) as CallPolicy);
    }
    this.policies = [...found].sort((a, b) => (a.order ?? 0) - (b.order ?? 0));
  }

  /**
   * Increases with each `changed()`.
   *
   * @internal
   */
  get version(): number {
    return this.changes;
  }

  /**
   * The names of all rules for a key: see CallPolicy.rulesOf().
   *
   * @internal
   */
  rulesOf(grant: Grant): string[] {
    return this.policies.flatMap((policy) => policy.rulesOf?.(grant) ?? []);
  }

  /** Calls `appliesTo` and `rulesOf` again for every key. To be called when anything besides the grant on which it depends has changed. */
  changed(): void {
    this.changes++;
  }

  /**
   * The policies for a key.
   *
   * @returns null if there is none
   *
   * @internal
   */
  of(grant: Grant): readonly CallPolicy[] | null {
    return grant.policiesVersion === this.changes ? grant.policies! : this.resolve(grant);
  }

  private resolve(grant: Grant): readonly CallPolicy[] | null {
    const version = this.changes;
    const policies = this.policies.filter((policy) => policy.appliesTo?.(grant) ?? true);
    // Last: after an error of a policy, the next call asks again.
    grant.policiesVersion = version;
    return (grant.policies = policies.length === 0 ? null : policies);
  }
}
