import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { CallPolicies } from './call-policies.js';

/** Finds the policies of calls, in any module. */
@Module({ imports: [DiscoveryModule], providers: [CallPolicies], exports: [CallPolicies] })
export class PoliciesModule {}
