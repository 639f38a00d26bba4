// Package scenarios has no code, only tests: forty faults that systems of this kind
// had in public, each played on the real adapters, with the right outcome held.
// The link to each stands above its test, with what went wrong there and what is
// right here.
//
// Schedulers mostly run in the test's process, on a Redis and a database of the
// test's own, where they are watched closely; where a scenario is about a process
// that dies or is asked to end, it is one. Outages and counts are shortened in scale;
// DUECLAIM_STRESS has them whole. What a scenario measured is its figure in the
// report of the run.
//
// Five of them, about statements whose outcome is unknown, are in package unknowns.
// Where a scenario is about what the project doesn't have yet (time-outs of tasks,
// limits of queues) the test's comment says what stands for it.
//
//	R1   asynq              index entry lost, worker dead            TestR1TasksOfAKilledWorkerRunAgainWithoutTheirIndexEntries
//	R5   asynq              crash of a task without retries          TestR5ACrashIsNoFailureOfATaskThatMayFailOnce
//	R7   asynq              rescue after the time-out, not the lease TestR7ACrashedTaskWaitsForItsLeaseNotForItsWork
//	R8   river              late rescue of a finished job            TestR8ALateRescueDoesNotTouchAFinishedTask
//	R9   river              page full of rows that can't be rescued  TestR9APageOfRowsThatCannotBeRescuedHidesNothing
//	R12  river, que         old snapshot on Postgres                 TestR12AnOldSnapshotSlowsNoClaim
//	R14  delayqueue         strict Redis servers                     TestR14AStrictServerAcceptsEveryScript
//	R15  BullMQ             short outage of Redis                    TestR15TasksStartSoonAfterAnOutageOfRedis
//	R17  BullMQ             index evicted                            TestR17AnEvictedIndexIsRebuilt
//	R18  BullMQ             task ended by hand                       TestR18WhatAnOperatorEndedInTheDatabaseNeverRuns
//	R21  Celery             due later than a lease lasts             TestR21ATaskFurtherOffThanALeaseRunsOnce
//	R22  Celery             Redis restarted empty                    TestR22RedisRestartedEmptyLosesNoTaskAndDisturbsNone
//	R23  kombu              deploys                                  TestR23ADeployGivesBackWhatWasNotStarted
//	R24  Sidekiq            death between index and claim            TestR24ADeathBetweenIndexAndClaimLosesNothing
//	R25  Sidekiq            pollers of the same entry                TestR25EightPollersOfTheSameEntriesRunEachOnce
//	R27  Sidekiq, Hangfire  indexed before the commit                TestR27ATaskOfAnOpenTransactionRunsAfterTheCommitOrNever
//	R29  Redisson           replica promoted                         TestR29ThePromotionOfAReplicaStopsNothing
//	R30  Redisson           no producer after a restart              TestR30OverdueTasksRunWithoutAnyProducer
//	R32  RocketMQ           restart during dispatch                  TestR32ARestartDuringDispatchDoublesAtMostWhatACrashInterrupted
//	R33  RocketMQ           one bad item of a batch                  TestR33OneBadItemOfABatchHarmsNoOther
//	R34  RocketMQ           committed behind the cursor              TestR34ATaskThatIsCommittedBehindTheSweepIsFound
//	R35  RocketMQ           index away for long                      TestR35NothingIsForgottenWhileTheIndexCannotBeReached
//	R36  db-scheduler       heartbeats during a shutdown             TestR36HeartbeatsGoOnWhileAShutdownWaits
//	R37  db-scheduler       cut off from the database                TestR37AHandlerIsCancelledBeforeItsLeaseIsOver
//	R38  Galera             rolled back at the commit                TestR38AClaimThatIsRolledBackAtItsCommitStartsNothing
//	R39  db-scheduler       ON UPDATE on the due time                TestR39ADueColumnThatChangesByItselfIsRefused
//	R40  db-scheduler       clocks that differ                       TestR40WorkersWhoseClocksAreMinutesOffDisturbNobody
//	R42  Quartz             stalled recoverer                        TestR42ASweeperThatStalledLeavesTheNewerLeaseAlone
//	R43  pg-boss            deaf handler                             TestR43ADeafHandlerKeepsItsSlotAndItsCompletionIsRefused
//	R45  Solid Queue        stolen alive, two ends                   TestR45ATaskThatWasStolenAliveHasOneEnd
//	R46  Solid Queue        completion not recorded                  TestR46ACompletionThatCannotBeRecordedIsTriedAgainAndThenGivenUp
//	R48  Oban               old name, new process                    TestR48AWorkerThatComesBackUnderItsOldNameAdoptsNothing
//	R49  Solid Queue        deadlocks                                TestR49ProducersWorkersSweepersAndPurgersDoNotDisturbEachOther
//	R51  TiDB               committed, answered by an error          TestR51AWriteConflictThatWasCommittedIsFoundByItsHolder
//	R52  go-sql-driver      executed again                           TestR52AStatementWhoseReplyIsLostIsExecutedOnceOnMySQL
//	R53  pgx                executed again                           TestR53AStatementWhoseReplyIsLostIsExecutedOnceOnPgx
//	R54  go-redis           executed again                           TestR54AStepOfTheIndexThatIsExecutedAgainLeavesWhatOneLeaves
//	R57  agenda             lapsed lease, due later                  TestR57ALapsedLeaseIsNotRefreshedBeforeItsTaskIsDue
//	R58  asynq              id used again                            TestR58AnIDIsFreeAgainWhenItsTaskIsOver
//	R59  machinery          busy while idle                          TestR59AnIdleWorkerAsksLittle
//
// A test fails when one of them is missing.
package scenarios
