import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { LimitRule } from './limit-rule.entity.js';
import { LimitRules } from './limit-rules.service.js';

/** The limits and budgets that teams and keys have. What was used of them is kept by limits/. */
@Module({
  imports: [TypeOrmModule.forFeature([LimitRule])],
  providers: [LimitRules],
  exports: [LimitRules]
})
export class LimitRulesModule {}
