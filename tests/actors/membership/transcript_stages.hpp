// tests/actors/membership/transcript_stages.hpp - who can play a story.
#pragma once
#include "tests/actors/membership/transcript.hpp"

#include <memory>

namespace poseidon::transcript {

/// The leader, and what its plan of the views asks it to do: "> 0 leads a run of 3". The events stand in transcript_plan.cpp.
[[nodiscard]] std::unique_ptr<stage> plan_stage();

/// The members of view 1 that vote on view 2, and the letters between them: "> 0 1 2 are members with witness 2". The events stand in
/// transcript_vote.cpp. Letters wait until "> letters arrive".
[[nodiscard]] std::unique_ptr<stage> vote_stage();

}  // namespace poseidon::transcript
