//! The feature gates of Kubernetes 1.35, with warnings about those that cannot be changed.

/// The gates that are on by default.
const ON: &str = "
    APIResponseCompression APIServerIdentity APIServerTracing AggregatedDiscoveryRemoveBetaType
    AllowParsingUserUIDFromCertAuth AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
    AuthorizeNodeWithSelectors AuthorizePodWebsocketUpgradeCreatePermission AuthorizeWithSelectors
    BtreeWatchCache CPUManagerPolicyBetaOptions CPUManagerPolicyOptions CRDValidationRatcheting
    CSIMigrationPortworx CSIServiceAccountTokenSecrets ClearingNominatedNodeNameAfterBinding
    ConsistentListFromCache ContainerCheckpoint ContainerRestartRules ContextualLogging
    CustomResourceFieldSelectors DRAAdminAccess DRAPrioritizedList DRAResourceClaimDeviceStatus
    DRASchedulerFilterTimeout DeclarativeValidation DeploymentReplicaSetTerminatingReplicas
    DetectCacheInconsistency DisableAllocatorDualWrite DisableCPUQuotaWithExclusiveCPUs
    DisableNodeKubeProxyVersion DynamicResourceAllocation EnvFiles ExecProbeTimeout
    ExternalServiceAccountTokenSigner GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority
    HPAConfigurableTolerance HonorPVReclaimPolicy HostnameOverride ImageMaximumGCAge ImageVolume
    InOrderInformers InOrderInformersBatchProcess InPlacePodVerticalScaling InformerResourceVersion
    JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI
    KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletFineGrainedAuthz KubeletPSI
    KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletPodResourcesListUseActivePods
    KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders KubeletTracing
    ListFromCacheSnapshot LogarithmicScaleDown LoggingBetaOptions MatchLabelKeysInPodAffinity
    MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge MemoryManager
    MultiCIDRServiceAllocator MutableCSINodeAllocatableCount NFTablesProxyMode
    NodeInclusionPolicyInPodTopologySpread NodeSwap NominatedNodeNameForExpectation OpenAPIEnums
    OpportunisticBatching OrderedNamespaceDeletion PodDeletionCost PodLevelResources PodLifecycleSleepAction
    PodLifecycleSleepActionAllowZero PodObservedGenerationTracking PodReadyToStartContainersCondition
    PodSchedulingReadiness PodTopologyLabelsAdmission PortForwardWebsockets PreferSameTrafficDistribution
    PreventStaticPodAPIReferences ProcMountType RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
    RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation ReloadKubeletServerCertificateFile
    RemoteRequestHeaderUID ResilientWatchCacheInitialization RetryGenerateName
    RotateKubeletServerCertificate SELinuxChangePolicy SELinuxMountReadWriteOncePod SchedulerAsyncPreemption
    SchedulerPopFromBackoffQ SchedulerQueueingHints SeparateTaintEvictionController
    ServiceAccountNodeAudienceRestriction ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
    ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo ServiceTrafficDistribution
    SidecarContainers SizeBasedListCostEstimate StatefulSetSemanticRevisionComparison StorageNamespaceIndex
    StorageVersionHash StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
    StructuredAuthenticationConfiguration StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics StructuredAuthorizationConfiguration
    SupplementalGroupsPolicy SystemdWatchdog TokenRequestServiceAccountUIDValidation TopologyAwareHints
    TopologyManagerPolicyBetaOptions TopologyManagerPolicyOptions TranslateStreamCloseWebsocketRequests
    UnauthenticatedHTTP2DOSMitigation UserNamespacesSupport VolumeAttributesClass WatchList WatchListClient
    WinDSR WinOverlay WindowsGracefulNodeShutdown";

/// The gates that are off by default.
const OFF: &str = "
    APIServingWithRoutine AllAlpha AllBeta AllowDNSOnlyNodeCSR
    AllowInsecureKubeletCertificateSigningRequests AllowOverwriteTerminationGracePeriodSeconds
    AllowUnsafeMalformedObjectDeletion CBORServingAndStorage CPUManagerPolicyAlphaOptions
    CRDObservedGenerationTracking CSIVolumeHealth ChangeContainerStatusOnKubeletRestart ClientsAllowCBOR
    ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
    ClusterTrustBundle ClusterTrustBundleProjection ComponentFlagz ComponentStatusz
    ConcurrentWatchObjectDecode ConstrainedImpersonation ContainerStopSignals CoordinatedLeaderElection
    CrossNamespaceVolumeDataSource CustomCPUCFSQuotaPeriod DRAConsumableCapacity DRADeviceBindingConditions
    DRADeviceTaintRules DRADeviceTaints DRAExtendedResource DRAPartitionableDevices
    DeclarativeValidationTakeover EventedPLEG GangScheduling GenericWorkload GitRepoVolumeDriver
    HPAScaleToZero InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingAllocatedStatus
    InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
    InTreePluginPortworxUnregister KMSv1 KubeletInUserNamespace KubeletRegistrationGetOnExistsOnly
    LocalStorageCapacityIsolationFSQuotaMonitoring LoggingAlphaOptions MaxUnavailableStatefulSet MemoryQoS
    MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
    MutatingAdmissionPolicy NodeDeclaredFeatures NodeLogQuery PodAndContainerStatsFromCRI
    PodCertificateRequest PodLogsQuerySplitStreams QOSReserved ReduceDefaultCrashLoopBackOffDecay
    RelaxedServiceNameValidation ResourceHealthStatus RestartAllContainersOnContainerExits
    RuntimeClassInImageCriApi SELinuxMount SchedulerAsyncAPICalls SeparateCacheWatchRPC
    StorageCapacityScoring StorageVersionAPI StorageVersionMigrator StrictIPCIDRValidation
    TaintTolerationComparisonOperators TopologyManagerPolicyAlphaOptions UnknownVersionInteroperabilityProxy
    UserNamespacesHostNetworkSupport VolumeLimitScaling WatchCacheInitializationPostStartHook
    WatchFromStorageWithoutResourceVersion WindowsCPUAndMemoryAffinity WindowsHostNetwork";

/// Warnings about gates that are set to another value than this server has, or the error of an unknown gate or value.
pub(crate) fn warnings(pairs: &[(String, String)]) -> Result<Vec<String>, String> {
    let mut warnings = Vec::new();
    for (gate, value) in pairs {
        let gate = gate.strip_prefix("kube:").unwrap_or(gate);
        let is_on = is_on(gate).ok_or_else(|| format!("unrecognized feature gate: {gate}"))?;
        let wanted = value.to_ascii_lowercase().parse::<bool>().map_err(|_| {
            format!(
                "invalid value of {gate}={value}, err: strconv.ParseBool: parsing {value:?}: invalid syntax"
            )
        })?;
        if wanted != is_on {
            let state = if is_on { "on" } else { "off" };
            warnings
                .push(format!("--feature-gates={gate}={value} has no effect here: this feature is {state}"));
        }
    }
    Ok(warnings)
}

fn is_on(gate: &str) -> Option<bool> {
    let is_among = |list: &str| list.split_whitespace().any(|name| name == gate);
    if is_among(ON) {
        return Some(true);
    }
    is_among(OFF).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(gate: &str, value: &str) -> Result<Vec<String>, String> {
        warnings(&[(gate.to_owned(), value.to_owned())])
    }

    #[test]
    fn unknown_gates_are_refused_and_changed_ones_warned_about() {
        assert_eq!(set("Nope", "true").unwrap_err(), "unrecognized feature gate: Nope");
        assert!(set("AllAlpha", "false").unwrap().is_empty());
        assert!(set("kube:OpenAPIEnums", "true").unwrap().is_empty());
        assert_eq!(
            set("OpenAPIEnums", "false").unwrap(),
            ["--feature-gates=OpenAPIEnums=false has no effect here: this feature is on"]
        );
        assert!(set("AllAlpha", "perhaps").is_err());
    }
}
